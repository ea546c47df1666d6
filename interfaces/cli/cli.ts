import { Command, CommanderError } from 'commander'
import { accessCommands } from './access-commands.ts'
import { auditCommands } from './audit-commands.ts'
import { CliError, type CliIo, UsageError } from './io.ts'
import { machineryCommands } from './machinery-commands.ts'
import { partyCommands } from './party-commands.ts'
import { type SubmitOptions, submitPayrollFile } from './payroll-submit.ts'
import { policyCommands } from './policy-commands.ts'
import { verb, wholeNumber } from './verbs.ts'

const FAILED = 1
const USAGE = 2
const SUBMIT_TIMEOUT_SECONDS = 600

/**
 * Runs one command line.
 * @param args without program names.
 * @returns the exit code: 0, 1 when the verb failed (why is on stderr), 2 for wrong usage.
 */
export async function runCli(args: readonly string[], io: CliIo): Promise<number> {
  const program = build(io)
  try {
    await program.parseAsync(args, { from: 'user' })
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE
    if (error instanceof UsageError) {
      io.stderr.write(`error: ${error.message}\n`)
      return USAGE
    }
    const message =
      error instanceof CliError ? error.message : `unexpected: ${(error as Error).stack ?? error}`
    io.stderr.write(`error: ${message}\n`)
    return FAILED
  }
}

function build(io: CliIo): Command {
  const program = new Command('compstream')
    .description("operates a compstream service: workers' compensation payroll reporting")
    .option('--url <address>', 'operator API (COMPSTREAM_OPS_URL, default http://127.0.0.1:4005)')
    .option('--token <token>', 'operator token (OPERATOR_TOKEN, or the file operator-token in DATA_DIR)')
    .option('--json', 'print one JSON document instead of tables')
    .exitOverride()
    .showHelpAfterError('(add --help for usage)')
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
    })
  partyCommands(io, program)
  policyCommands(io, program)
  accessCommands(io, program)
  payrollCommands(io, program)
  machineryCommands(io, program)
  auditCommands(io, program)
  return program
}

function payrollCommands(io: CliIo, program: Command): void {
  const payroll = program.command('payroll').description('report payroll as a partner')
  verb<SubmitOptions>(
    io,
    payroll
      .command('submit')
      .description('send a CSV file as a payroll report and wait for its premium')
      .argument('<file>', 'CSV with a header row, or - for standard input')
      .requiredOption('--employer-fein <number>')
      .requiredOption('--policy-number <text>')
      .option('--period-start <date>', 'YYYY-MM-DD, with --period-end')
      .option('--period-end <date>', 'YYYY-MM-DD')
      .option('--core-url <address>', 'core API (COMPSTREAM_CORE_URL, default http://127.0.0.1:4002)')
      .option('--client-id <id>', 'API client (COMPSTREAM_CLIENT_ID)')
      .option('--client-secret <secret>', 'its secret (COMPSTREAM_CLIENT_SECRET)')
      .option('--sign', 'sign the requests, for clients that must')
      .option('--mcp-url <address>', 'tool server (COMPSTREAM_MCP_URL, default http://127.0.0.1:4001)')
      .option('--agent-key <key>', 'agent key: shows why rows are red (COMPSTREAM_AGENT_KEY)')
      .option('--idempotency-key <key>', 'send the same report twice under one key, and it counts once')
      .option('--timeout <seconds>', 'how long to wait for the premium', wholeNumber, SUBMIT_TIMEOUT_SECONDS),
    async ({ args, options }) => {
      if ((options.periodStart === undefined) !== (options.periodEnd === undefined)) {
        throw new UsageError('Give --period-start and --period-end together.')
      }
      return submitPayrollFile(io, args[0]!, options)
    },
  )
}
