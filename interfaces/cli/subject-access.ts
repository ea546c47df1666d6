import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { constants, createReadStream, createWriteStream, type WriteStream } from 'node:fs'
import { copyFile, link, lstat, rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import type { Command } from 'commander'
import { SUBJECT_ACCESS_FORMAT } from '../../application/audit/subject-access/subject-access.ts'
import { AgeRefused, newAgeKeys, openWithIdentity } from '../../infrastructure/crypto/age.ts'
import { SealBroken } from '../../infrastructure/crypto/sealed-stream.ts'
import { type Called, commandAt, type Further } from './endpoint-commands.ts'
import { LINE_FEED } from './export-files.ts'
import { NotWritten } from './http-client.ts'
import { CliError, type CliIo, UsageError } from './io.ts'
import { AS_LONG_AS_IT_TAKES } from './operator-client.ts'
import { type Output, resource } from './output.ts'
import { bytesOf, untilStopped, verb } from './verbs.ts'

/** Sealed files that answer a person: asked for, and opened without a service. */

interface ExportOptions {
  readonly out?: string
}

/** subject-access export: the sealed file comes into a new file; without a recipient the keys are made here and told once. */
export const exportSubject: Further<ExportOptions> = {
  options: (command) =>
    command.requiredOption(
      '--out <file>',
      'new file for what is sealed; nothing in it can be read without the key',
    ),
  makes: ['recipient'],
  async run({ client, endpoint, input, options }: Called<ExportOptions>) {
    const keys = input.body?.recipient === undefined ? newAgeKeys() : null
    const body = { ...input.body, ...(keys && { recipient: keys.recipient }) }
    const out = options.out!
    await intoNewFile(out, (into) => client().call(endpoint, { ...input, body, into }, AS_LONG_AS_IT_TAKES))
    const { recipient } = body as { readonly recipient: string }
    return resource({
      file: out,
      recipient,
      ...(keys && {
        key: keys.identity,
        note: 'The key is shown this once. Give it to the person apart from the file.',
      }),
    })
  },
}

/** subject-access key and open: need neither a service nor its database. */
export function subjectAccessCommands(io: CliIo, program: Command): void {
  verb(
    io,
    commandAt(program, 'subject-access key').description(
      'make a pair of keys, without a service: the recipient is for who answers, the key stays with the person',
    ),
    async () => {
      const { recipient, identity } = newAgeKeys()
      return resource({ recipient, key: identity })
    },
  )
  verb<{ key?: string; keyFile?: string; out: string }>(
    io,
    commandAt(program, 'subject-access open')
      .description('open a sealed file with its key, and check that it is whole, without a service')
      .argument('<file>', 'the sealed file')
      .option('--key-file <file>', 'file with the key: AGE-SECRET-KEY-1…')
      .option('--key <key>', 'the key itself; others may see it in the list of processes')
      .requiredOption('--out <file>', 'new file for what is opened: JSON lines'),
    async ({ args, options: { key, keyFile, out } }) => opened(args[0]!, keyOf(key, keyFile), out),
  )
}

function keyOf(key: string | undefined, keyFile: string | undefined): string {
  if ((key === undefined) === (keyFile === undefined)) throw new UsageError('Give --key-file, or --key.')
  if (key !== undefined) return key
  // as age-keygen writes it, with remarks
  const lines = bytesOf(keyFile!).toString().split('\n')
  return lines.find((line) => line.trim() !== '' && !line.startsWith('#')) ?? ''
}

/** Opens a file into a new one, which gets its name once all of it was checked. */
async function opened(file: string, key: string, out: string): Promise<Output> {
  const check = new LineCheck()
  const source = createReadStream(file)
  const readable = async function* () {
    try {
      for await (const part of source as AsyncIterable<Buffer>) yield part
    } catch (error) {
      throw new CliError(`${file} cannot be read: ${(error as Error).message}`)
    }
  }
  const plain = async function* () {
    for await (const part of openWithIdentity(key, readable())) {
      check.take(part)
      yield part
    }
    check.end()
  }
  try {
    await intoNewFile(out, (into) => pipeline(plain(), into))
  } catch (error) {
    if (error instanceof SealBroken) throw new CliError(`${file} was changed or cut`)
    if (error instanceof AgeRefused) throw new CliError(`${file} cannot be opened: ${error.message}`)
    throw error
  } finally {
    source.destroy()
  }
  return resource({ file: out, ...check.manifest })
}

/** Runs work that writes a new file, which gets its name at the end, and is gone where the work fails or is stopped. */
async function intoNewFile(path: string, work: (into: WriteStream) => Promise<unknown>): Promise<void> {
  const draft = `${path}.${randomBytes(4).toString('hex')}.partial`
  if (await lstat(path).catch(() => null)) throw isThere(path)
  const into = createWriteStream(draft, { flags: 'wx', mode: 0o600, flush: true })
  // the work hears of it as well, once it writes
  into.on('error', () => undefined)
  try {
    await once(into, 'open')
    await untilStopped(async (signal) => {
      signal.addEventListener('abort', () => into.destroy(new CliError(`stopped; ${path} was not written`)))
      await work(into)
    })
    await named(draft, path)
  } catch (error) {
    into.destroy()
    const { code, syscall } = ((error as Error).cause ?? error) as NodeJS.ErrnoException
    if (code === 'EEXIST') throw isThere(path)
    if (error instanceof NotWritten || ['open', 'write', 'fsync', 'copyfile'].includes(syscall ?? ''))
      throw new CliError(`${path} cannot be written: ${code}`)
    throw error
  } finally {
    await rm(draft, { force: true })
  }
}

/** Gives a whole draft its name, never over a file. */
async function named(draft: string, path: string): Promise<void> {
  try {
    await link(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw error
    // not every file system has hard links
    await copyFile(draft, path, constants.COPYFILE_EXCL)
  }
}

const isThere = (path: string) => new CliError(`${path} is there: nothing is overwritten`)

/** Bytes of the last line at the most. */
const MOST_MANIFEST_BYTES = 1024 * 1024

/** Holds lines against the manifest in the last of them. */
class LineCheck {
  readonly #hash = createHash('sha256')
  #lines = 0
  /** The line that has come last, as far as it has. */
  #held: Buffer = Buffer.alloc(0)
  manifest: Readonly<Record<string, unknown>> = {}

  take(part: Buffer): void {
    let bytes = Buffer.concat([this.#held, part])
    // all but the last whole line is told to be before it
    for (
      let end = bytes.indexOf(LINE_FEED);
      end >= 0 && end < bytes.length - 1;
      end = bytes.indexOf(LINE_FEED)
    ) {
      this.#hash.update(bytes.subarray(0, end + 1))
      this.#lines += 1
      bytes = bytes.subarray(end + 1)
    }
    this.#held = bytes
  }

  /** @throws CliError */
  end(): void {
    const { kind, format, lines, sha256, ...manifest } = manifestIn(this.#held)
    if (kind !== 'manifest' || format !== SUBJECT_ACCESS_FORMAT)
      throw new CliError('What was sealed is no answer to a person')
    if (lines !== this.#lines || sha256 !== this.#hash.digest('hex'))
      throw new CliError('What was sealed is not what its manifest says')
    this.manifest = { is_whole: true, lines, ...manifest, sha256 }
  }
}

function manifestIn(line: Buffer): Readonly<Record<string, unknown>> {
  try {
    return line.length > MOST_MANIFEST_BYTES ? {} : (JSON.parse(line.toString()) as Record<string, unknown>)
  } catch {
    return {}
  }
}
