// npm run check:language: names each text of the project that breaks a rule of scripts/language/rules.mjs.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { RULES } from './language/rules.mjs'
import { textsOf } from './language/texts.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
/** Pages, code and scripts: not what is generated from texts that are looked at, nor what was stored once, nor the rules. */
const READ = /\.(?:md|[cm]?[jt]s|py|sh|ya?ml|toml)$|^\.ci\//
const LEFT_OUT =
  /^(?:tests\/golden|docs\/reference)\/|^clients\/(?:node|python\/compstream)\/(?:core|payments|webhook|error)[-_]|^scripts\/language\/rules|^docs\/developers\/words\.md$/

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
let faults = 0
for (const path of files.trim().split('\n')) {
  if (!READ.test(path) || LEFT_OUT.test(path)) continue
  for (const { line, text } of textsOf(path, readFileSync(join(root, path), 'utf8'))) {
    // a word alone is a name
    if (!text.includes(' ')) continue
    for (const { find, write, why } of RULES) {
      const found = find.exec(text)
      if (found === null) continue
      faults += 1
      const around = text.slice(Math.max(0, found.index - 40), found.index + 60).trim()
      console.error(`${path}:${line}: ${around}\n  write: ${write} (${why})`)
    }
  }
}
if (faults > 0) process.exitCode = 1
