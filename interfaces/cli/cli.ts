import { Command, CommanderError } from 'commander'
import project from '../../package.json' with { type: 'json' }
import { auditCheckCommand } from './audit-check.ts'
import { CliError, type CliIo, EXIT, UsageError } from './io.ts'
import { logCommands } from './log-commands.ts'
import { partnerOptions } from './partner-client.ts'
import { type SubmitOptions, submitPayrollFile } from './payroll-submit.ts'
import { secretHelp } from './secrets.ts'
import { seconds, verb, wholeNumber } from './verbs.ts'
import { webhookCommands } from './webhook-commands.ts'

const SUBMIT_TIMEOUT_SECONDS = 600

/** What the operator's groups of commands are about, and what those without a group do. */
const OPERATOR = {
  tenants: 'partner accounts',
  carriers: 'insurers',
  'payroll-companies': 'who reports for several employers',
  employers: 'insured employers',
  policies: "workers' compensation policies",
  'api-clients': 'key pairs of partners for the REST APIs',
  'inbound-connections': 'signed payroll from partners',
  'webhook-subscriptions': 'addresses of partners that receive events',
  agents: 'credentials of AI agents on the tool server',
  clock: "the service's clock",
  projections: 'read models and what builds them',
  work: 'work of the process managers',
  alerts: 'what calls for a person',
  'card-processor': 'simulates payers and the processor; with the simulated card processor only',
  debits: 'bank debits, and what is in quarantine',
  'debit-batches': 'the batch worker of bank debits',
  'ach-accounts': 'accounts that money is moved with',
  'bank-rail': 'simulates what a bank reports of debits; with the simulated bank rail only',
  'bank-files': 'files for the bank',
  'bank-reports': 'files that the bank reported with',
  'bank-credits': 'money that came into the accounts of carriers',
  'processor-notices': 'notices of the card processor that were not understood',
  'return-rates': 'how many debits came back',
  reconciliations: 'comparisons of what is said of the money',
  'legacy-collections': 'what the legacy service has collected',
  financing: 'does what the simulated financing provider of the test path does',
  outbox: 'e-mails and texts that no provider delivers',
  faults: 'injected faults; with the virtual clock only',
  streams: 'single streams of the log',
  events: 'the whole log',
  audit: 'tamper evidence',
} as const
const OPERATOR_ALONE = {
  stories: 'tell the story of a thing, its events in sentences, as of any time',
  drain: 'wait until no work is left at the present clock',
  erase: 'destroy the data key of a person or employer; there is no way back. It asks first',
} as const

/**
 * Runs one command line.
 * @param args without program names.
 * @returns the exit code: 0, 1 when the verb failed (why is on stderr, with `--json` as one JSON document
 *   `{ ok: false, error, message }`), 2 for wrong usage; `payroll submit`: 3 when the file failed, 4 when it is not
 *   finished in time.
 */
export async function runCli(args: readonly string[], io: CliIo): Promise<number> {
  const isJson = args.slice(0, args.includes('--') ? args.indexOf('--') : undefined).includes('--json')
  try {
    await (await build(io, isJson, args)).parseAsync(args, { from: 'user' })
    return EXIT.done
  } catch (thrown) {
    if (thrown instanceof CommanderError) {
      if (thrown.exitCode === 0) return EXIT.done
      // in text it has been written already
      if (isJson) writeError(io, true, new UsageError(usageMessage(thrown)))
      return EXIT.usage
    }
    const failure =
      thrown instanceof CliError ? thrown : new CliError(unexpected(thrown, isJson), { error: 'Unexpected' })
    writeError(io, isJson, failure)
    return failure.exitCode
  }
}

function writeError(io: CliIo, isJson: boolean, { error, message, text }: CliError): void {
  io.stderr.write(isJson ? `${JSON.stringify({ ok: false, error, message })}\n` : `error: ${text}\n`)
}

function usageMessage({ code, message }: CommanderError): string {
  return code === 'commander.help' ? 'A command is missing; see --help.' : message.replace(/^error: /, '')
}

function unexpected(thrown: unknown, isJson: boolean): string {
  const { message, stack } = thrown as Error
  return isJson ? `unexpected: ${message ?? thrown}` : `unexpected: ${stack ?? thrown}`
}

async function build(io: CliIo, isJson: boolean, args: readonly string[]): Promise<Command> {
  const token = secretHelp('operator token', 'OPERATOR_TOKEN')
  const program = new Command('compstream')
    .description(
      "operates a compstream service: workers' compensation payroll reporting and premium payments",
    )
    .version(project.version, '--version', 'print the version')
    .option('--url <address>', 'operator API (COMPSTREAM_OPS_URL, default http://127.0.0.1:4005)')
    .option('--token <token>', token.value)
    .option(
      '--token-file <file>',
      `${token.file}; else the file operator-token in DATA_DIR, else it is asked for`,
    )
    .option(
      '--request-timeout <seconds>',
      'for each answer, default 120; what waits for the service by nature takes no notice of it',
      seconds,
    )
    .option('--json', 'print one JSON document instead of tables; errors, too')
    .exitOverride()
    .showHelpAfterError('(add --help for usage)')
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => {
        if (!isJson) io.stderr.write(text)
      },
    })
  for (const [name, what] of Object.entries(OPERATOR)) program.command(name).description(what)
  // the declarations of the API take time to load
  if (args.some((arg) => arg in OPERATOR || arg in OPERATOR_ALONE)) {
    const { operatorCommands } = await import('./operator-commands.ts')
    operatorCommands(io, program)
  } else {
    for (const [name, what] of Object.entries(OPERATOR_ALONE)) program.command(name).description(what)
  }
  payrollCommands(io, program)
  webhookCommands(io, program)
  logCommands(io, group(program, 'events'))
  auditCheckCommand(io, group(program, 'audit'))
  return program
}

function group(program: Command, name: string): Command {
  return program.commands.find((one) => one.name() === name)!
}

function payrollCommands(io: CliIo, program: Command): void {
  const key = secretHelp('agent key', 'COMPSTREAM_AGENT_KEY')
  const payroll = program.command('payroll').description('report payroll as a partner')
  verb<SubmitOptions>(
    io,
    partnerOptions(payroll.command('submit'), 'core')
      .description(
        'send a CSV file as a payroll report and wait for its premium; code 3: the file failed, 4: it is not finished',
      )
      .argument('<file>', 'CSV with a header row, or - for standard input')
      .requiredOption('--employer-fein <number>')
      .requiredOption('--policy-number <text>')
      .option('--period-start <date>', 'YYYY-MM-DD, with --period-end')
      .option('--period-end <date>', 'YYYY-MM-DD')
      .option('--mcp-url <address>', 'tool server (COMPSTREAM_MCP_URL, default http://127.0.0.1:4001)')
      .option('--agent-key <key>', key.value)
      .option('--agent-key-file <file>', `${key.file}; with it you see why rows are red`)
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
