import { runCli } from './cli.ts'

// a reader that has seen enough (head, less) closes the pipe: that is no failure
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit(0)
})

const { stdin, stdout, stderr, env } = process
process.exitCode = await runCli(process.argv.slice(2), { stdin, stdout, stderr, env })
