import { Command, CommanderError } from 'commander'
import project from '../../package.json' with { type: 'json' }
import { auditCheckCommand } from './audit-check.ts'
import { backupCommands } from './backup-commands.ts'
import { CliError, type CliIo, EXIT, Refusal, UsageError } from './io.ts'
import { logCommands } from './log-commands.ts'
import { partnerOptions } from './partner-client.ts'
import { type SubmitOptions, submitPayrollFile } from './payroll-submit.ts'
import { secretHelp } from './secrets.ts'
import { seconds, verb, wholeNumber } from './verbs.ts'
import { webhookCommands } from './webhook-commands.ts'

const SUBMIT_TIMEOUT_SECONDS = 600

/** What the operator's groups of commands are for, in a sentence, and what those without a group do. */
const OPERATOR = {
  tenants: 'Create the accounts of partners, and look them up.',
  carriers: 'Create the insurers of a tenant, and see what is theirs.',
  'payroll-companies': 'Create the companies that report payroll for several employers.',
  employers: 'Create insured employers, find and change them, and list their employees.',
  policies: "Create workers' compensation policies, change their terms, and cancel them.",
  'api-clients': 'Issue, rotate and end the keys of partners for the REST APIs.',
  'inbound-connections': 'Open and close connections by which partners push signed payroll.',
  'webhook-subscriptions': 'See and end the subscriptions by which partners receive events.',
  agents: 'Issue, list and end the credentials of AI agents on the tool server.',
  clock: "Read the service's clock, and move a virtual one.",
  projections: 'Watch, rebuild and switch what builds the read models.',
  work: 'See what process managers have to do, and have it tried again or dropped.',
  'dead-letters': 'List the streams that wait behind an event which a reader of the log could not handle.',
  alerts: 'See what calls for a person, and take note of it.',
  'card-processor': 'Play the payer or the card processor, where that is simulated.',
  debits: 'Find bank debits, and decide on those in quarantine.',
  'debit-batches': 'Have the batch worker take along the bank debits that are due.',
  'ach-accounts': 'Vouch for accounts that money is moved with, and enable disabled ones.',
  'bank-rail': 'Play the bank, where that is simulated: it acknowledges, settles and returns debits.',
  'bank-files': 'Follow the files for the bank, and say what became of one.',
  'bank-reports': 'Follow the files that the bank reported with, and see to what they left over.',
  'bank-credits': 'Record money that came into the accounts of carriers, and list it.',
  'processor-notices': 'See to notices of the card processor that were not understood.',
  'return-rates': 'Compare how many debits came back with what is allowed.',
  reconciliations: 'Compare what is said of the money with the money, and list what differs.',
  'legacy-collections': 'Record what the legacy service has collected, so that nothing is collected twice.',
  financing: 'Play the financing provider of the test path.',
  outbox: 'Read the emails and texts that no provider delivers.',
  faults: 'Have simulated providers and the pipeline fail; with the virtual clock only.',
  streams: 'Read single streams of the log, and the state that they make.',
  events: 'Read the whole log, copy it, and compare the copy.',
  audit: 'Prove that nothing in the log was changed.',
  'subject-access': 'Answer a person with everything that is kept about them, as a sealed file; open one.',
  operators: 'Name the people who may call the operator API, with roles and tokens, and end their access.',
  'pending-actions': 'See what waits for a second operator, and approve or decline it.',
  'payroll-files': 'Follow files of payroll rows, and of changes of employees.',
  'payment-links': 'Find hosted checkouts, each paid once.',
  'payment-sessions': 'Find payments of customers by card or bank debit.',
  subscriptions: 'Find monthly charges of cards.',
  'bank-accounts': 'Find bank accounts as they are shown to people.',
  'bank-connections': 'Find links to accounts at banks.',
  'debit-collections': 'Find collections of several debits that one call asked for.',
  'financing-sessions': 'Find sessions of the financing test path.',
  intakes: 'Find calls that took in an employer and its policy.',
  'webhook-events': 'Find events that were raised for partners.',
  'agent-credentials': 'Find the credentials of agents on the tool server.',
} as const
const OPERATOR_ALONE = {
  search: 'find what a text names',
  stories: 'tell the story of a thing, its events in sentences, as of any time',
  throughput: 'show how much was stored, and how late readers of the log were',
  drain: 'wait until no work is left at the present clock',
  erase: 'destroy the data key of a person or employer; there is no way back. It asks first',
} as const

/**
 * Runs one command line.
 * @param args without program names.
 * @returns the exit code: 0, 1 when the verb failed (why is on stderr, with `--json` as one JSON document
 *   `{ ok: false, error, message }`, of a refusal with `code` and `field`), 2 for wrong usage; `payroll submit`: 3 when the file failed, 4 when it is
 *   stored and not finished in time or not to be followed, 5 when it is done and the tool server did not tell why rows are red.
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

function writeError(io: CliIo, isJson: boolean, failure: CliError): void {
  const { error, message, text } = failure
  const details = failure instanceof Refusal ? failure.details : {}
  const json = () => `${JSON.stringify({ ok: false, error, message, ...details })}\n`
  io.stderr.write(isJson ? json() : `error: ${text}\n`)
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
  backupCommands(io, program)
  auditCheckCommand(io, group(program, 'audit'))
  return program
}

function group(program: Command, name: string): Command {
  return program.commands.find((one) => one.name() === name)!
}

function payrollCommands(io: CliIo, program: Command): void {
  const key = secretHelp('agent key', 'COMPSTREAM_AGENT_KEY')
  const payroll = program.command('payroll').description('Report payroll as a partner.')
  verb<SubmitOptions>(
    io,
    partnerOptions(payroll.command('submit'), 'core')
      .description(
        'send a CSV file as a payroll report and wait for its premium; code 3: the file failed, 4: it is stored and not finished, 5: it is finished, and why rows are red could not be read',
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
