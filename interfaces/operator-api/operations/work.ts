import { z } from 'zod'
import { accepted } from '../../endpoints/endpoint.ts'
import { REQUIRED } from '../../endpoints/faults.ts'
import { optional, text, withDefault } from '../../endpoints/fields.ts'
import { endpoint, record } from '../host/api.ts'
import { expectReader, WITH_WORK } from '../host/readers.ts'
import { Work } from '../host/work-schema.ts'

const dry_run = withDefault(z.boolean(), false).describe('Only count it')
const NAMES = ['process_manager', 'kind', 'key'] as const

export const workEndpoints = [
  endpoint({
    operation: 'showWork',
    route: 'GET /work',
    summary: 'Show work of the process managers: counts, what failed, where each of them stands',
    answers: { 200: Work },
    handle: ({ host }) => host.services.work.overview(),
  }),
  endpoint({
    operation: 'redriveWork',
    route: 'POST /work/redrive',
    summary: 'Try failed work again, all of it or one piece',
    description: 'One piece is named by `process_manager`, `kind` and `key` together.',
    body: z
      .object({
        dry_run,
        process_manager: optional(text()),
        kind: optional(text()),
        key: optional(text()),
      })
      .superRefine((body, context) => {
        const missing = NAMES.filter((name) => body[name] === null)
        if (missing.length === NAMES.length) return
        for (const name of missing) context.addIssue({ code: 'custom', path: [name], message: REQUIRED })
      }),
    answers: { 200: z.object({ redriven: z.int(), dry_run: z.boolean() }) },
    async handle(call) {
      const { process_manager, kind, key, dry_run } = call.body
      await expectReader(call.host.services, 'process_manager', process_manager, WITH_WORK)
      const one =
        process_manager === null ? null : { processManager: process_manager, kind: kind!, key: key! }
      if (!dry_run) await record(call, 'redrive', one ? `${one.processManager}/${one.kind}` : 'work')
      return { redriven: await call.host.services.work.redrive({ key: one, dryRun: dry_run }), dry_run }
    },
  }),
  endpoint({
    operation: 'discardWork',
    route: 'POST /work/discard',
    summary: 'Remove work of a kind that this release does not have',
    body: z.object({
      process_manager: text(),
      kind: text(),
      key: optional(text()).describe('Only this piece'),
      dry_run,
    }),
    example: { process_manager: 'payroll-pipeline', kind: 'former-phase' },
    answers: { 200: z.object({ discarded: z.int(), dry_run: z.boolean() }) },
    errors: { 409: 'The release has this kind' },
    command: { operands: ['process_manager', 'kind'] },
    refuses: { 409: ['kind_of_work_known'] },
    async handle(call) {
      const { work } = call.host.services
      const { process_manager: processManager, kind, key, dry_run } = call.body
      await expectReader(call.host.services, 'process_manager', processManager, WITH_WORK)
      const chosen = { processManager, kind, key }
      const there = accepted(await work.discard({ ...chosen, dryRun: true }))
      if (dry_run) return { discarded: there, dry_run }
      await record(call, 'discard', `${processManager}/${kind}`, { key })
      return { discarded: accepted(await work.discard({ ...chosen, dryRun: false })), dry_run }
    },
  }),
]
