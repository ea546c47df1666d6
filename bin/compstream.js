#!/usr/bin/env node
import { existsSync } from 'node:fs'

const program = new URL('../dist/cli.js', import.meta.url)
if (existsSync(program)) {
  await import(program.href)
} else {
  process.stderr.write('compstream is not built yet: run `npm run build` first\n')
  process.exitCode = 1
}
