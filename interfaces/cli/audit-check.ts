import { statSync } from 'node:fs'
import type { Command } from 'commander'
import { z } from 'zod'
import { checkProof, ProofFails } from '../../application/audit/check-proof.ts'
import { checkExport } from './export-check.ts'
import { CliError, type CliIo, UsageError } from './io.ts'
import { resource } from './output.ts'
import { bytesOf, jsonFile, verb } from './verbs.ts'

const path = z.array(z.string())
const Proof = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('inclusion'),
    event_id: z.string(),
    leaf: z.string(),
    leaf_index: z.int().min(0),
    path,
    checkpoint: z.string(),
    key: z.string(),
  }),
  z.object({
    kind: z.literal('consistency'),
    path,
    from: z.string().nullable(),
    to: z.string(),
    key: z.string(),
  }),
])

/** audit check: needs neither a service nor its database. */
export function auditCheckCommand(io: CliIo, audit: Command): void {
  verb<{ key?: readonly string[]; keyFile?: string }>(
    io,
    audit
      .command('check')
      .description(
        'check a proof of `audit prove` or `audit consistency`, or an export, with the verifier key alone, without a service',
      )
      .argument('<file>', 'the proof as JSON, or - for standard input; or the folder of an export')
      .option(
        '--key <key>',
        'the verifier key that you kept, and those of witnesses: again for another one',
        (key: string, before: readonly string[] = []) => [...before, key],
      )
      .option(
        '--key-file <file>',
        'file with it, or several in lines, such as `verifier-key` in AUDIT_CHECKPOINTS_DIR',
      ),
    async ({ args, options: { key, keyFile } }) => {
      const lines = keyFile === undefined ? [] : bytesOf(keyFile).toString().split('\n')
      const keys = [...(key ?? []), ...lines].map((one) => one.trim()).filter((one) => one !== '')
      if (keys.length === 0)
        throw new UsageError('Give --key or --key-file: a proof is worth what its key is.')
      const place = args[0]!
      try {
        const isExport = statSync(place, { throwIfNoEntry: false })?.isDirectory()
        return resource({
          proven: true,
          ...(isExport ? await checkExport(place, keys) : checkProof(proofIn(place), keys)),
        })
      } catch (error) {
        if (error instanceof ProofFails) throw new CliError(`The proof proves nothing: ${error.message}`)
        if (error instanceof CliError) throw error
        throw new UsageError((error as Error).message)
      }
    },
  )
}

function proofIn(file: string): z.infer<typeof Proof> {
  const proof = Proof.safeParse(jsonFile(file))
  if (!proof.success) throw new CliError(`${file} holds no proof`)
  return proof.data
}
