// node examples/field.mjs <name>: prints one field of the JSON answer on standard input.
// Without it: what the answer says instead on standard error, and exit code 1, so that `&&` stops there.

import { readFileSync } from 'node:fs'

const name = process.argv[2]

/** What to say of an answer that lacks the field. */
function reason(text) {
  if (text.trim() === '') return 'no answer'
  try {
    const { error, message } = JSON.parse(text)
    return typeof error === 'string' ? `${error}: ${message}` : 'it is not in the answer'
  } catch {
    return `the answer is no JSON: ${text.slice(0, 200)}`
  }
}

const text = readFileSync(0, 'utf8')
let value
try {
  const answer = JSON.parse(text)
  value = (answer.data ?? answer)[name]
} catch {
  value = undefined
}
if (value === undefined || value === null) {
  process.stderr.write(`${name}: ${reason(text)}\n`)
  process.exitCode = 1
} else process.stdout.write(`${value}\n`)
