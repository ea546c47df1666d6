import { z } from 'zod'
import type { Operator } from '../../../domain/access/operators.ts'
import { Answer, type Call } from '../../endpoints/endpoint.ts'
import { optional, text, withDefault } from '../../endpoints/fields.ts'
import { endpoint, type OperatorHost, record } from '../host/api.ts'
import { Projection, ProjectionWithDeadLetters, Redriven, switching } from '../host/projection-schemas.ts'
import type { ProjectionOperations } from '../host/services.ts'
import { given, reason } from '../host/values.ts'

const params = z.object({ name: z.string().describe('The name of the projection') })
const Generation = z.object({ generation: z.int() })
const Started = Generation.extend({ version: z.int() })
const State = z.object({ state: z.string().describe('How the projection stands now') })
const RolledBack = Generation.extend({
  switched: z.boolean().describe('False: it happens by itself as soon as it has caught up'),
  position: z.number().optional(),
})

const NONE = { 404: 'There is no such projection' } as const
const REFUSED = {
  ...NONE,
  409: 'Its present state does not allow it; the message says why',
  503: 'No process runs the projection',
} as const

/** A verb on one projection, which must exist before it is recorded. */
async function recorded<Result>(
  call: Pick<
    Call<OperatorHost, Operator, { readonly name: string }, unknown, unknown>,
    'host' | 'caller' | 'params' | 'requestId'
  >,
  action: string | null,
  details: Readonly<Record<string, string | null>>,
  run: (projections: ProjectionOperations, name: string) => Promise<unknown>,
): Promise<Result> {
  const { projections } = call.host.services
  const { name } = call.params
  await projections.show(name)
  if (action !== null) await record(call, action, name, details)
  return (await run(projections, name)) as Result
}

/** A verb that takes nothing. @param action what is recorded of it. */
function verb<Schema extends z.ZodType>(
  operation: string,
  name: 'cancel' | 'pause' | 'resume',
  schema: Schema,
  summary: string,
  action: string = name,
) {
  return endpoint({
    operation,
    route: `POST /projections/{name}/${name}`,
    summary,
    params,
    answers: { 200: schema },
    errors: REFUSED,
    handle: async (call) =>
      new Answer(
        200,
        await recorded<z.input<Schema>>(call, action, {}, (all, projection) => all[name](projection)),
      ),
  })
}

export const projectionEndpoints = [
  endpoint({
    operation: 'listProjections',
    route: 'GET /projections',
    summary: 'List the projections with state, position and lag',
    answers: { 200: z.array(Projection).readonly() },
    columns: {
      name: 'name',
      version: 'version',
      state: 'state',
      position: 'position',
      'lag (events)': 'lag.events',
      'lag (s)': 'lag.seconds',
      'parked streams': 'parked_streams',
      rebuild: ({ rebuild }) => progressOf(rebuild as z.output<typeof Projection>['rebuild']),
    },
    handle: ({ host }) => host.services.projections.list(),
  }),
  endpoint({
    operation: 'showProjection',
    route: 'GET /projections/{name}',
    summary: 'Show a projection with its dead-lettered streams and the progress of a rebuild',
    params,
    answers: { 200: ProjectionWithDeadLetters },
    errors: NONE,
    handle: ({ host, params }) => host.services.projections.show(params.name),
  }),
  endpoint({
    operation: 'rebuildProjection',
    route: 'POST /projections/{name}/rebuild',
    summary: 'Build a read model anew beside the live one, which goes on answering',
    params,
    body: z.object({
      switch: withDefault(switching, 'auto').describe('`manual` waits for a switch once it has caught up'),
    }),
    answers: { 202: Started },
    errors: REFUSED,
    handle: (call) =>
      recorded<z.input<typeof Started>>(call, 'rebuild', call.body, (projections, name) =>
        projections.rebuild(name, call.body),
      ),
  }),
  endpoint({
    operation: 'switchProjection',
    route: 'POST /projections/{name}/switch',
    summary: 'Put the rebuilt read model in place of the live one',
    params,
    body: z.object({ reason: reason() }),
    answers: { 200: Generation },
    errors: REFUSED,
    async handle(call) {
      const { rebuild } = await call.host.services.projections.show(call.params.name)
      const differing = rebuild?.comparison?.tables.filter(({ equal }) => !equal).map(({ table }) => table)
      const details = {
        ...given(call.body),
        ...(differing?.length && { differing_tables: differing.join(' ') }),
      }
      const data = await recorded<z.input<typeof Generation>>(call, 'switch', details, (all, name) =>
        all.switch(name),
      )
      return new Answer(200, data)
    },
  }),
  endpoint({
    operation: 'rollBackProjection',
    route: 'POST /projections/{name}/rollback',
    summary: 'Put the read model back that was live before',
    params,
    body: z.object({ reason: reason() }),
    answers: { 200: RolledBack, 202: RolledBack },
    errors: REFUSED,
    async handle(call) {
      const data = await recorded<z.input<typeof RolledBack>>(
        call,
        'rollback',
        given(call.body),
        (projections, name) => projections.rollback(name),
      )
      return new Answer(data.switched ? 200 : 202, data)
    },
  }),
  verb(
    'cancelProjectionRebuild',
    'cancel',
    Generation,
    'Give a rebuild up; the live read model stays as it is',
    'cancel-rebuild',
  ),
  verb(
    'pauseProjection',
    'pause',
    State,
    'Stop applying events, also across restarts; queries go on with what is there',
  ),
  verb('resumeProjection', 'resume', State, 'Go on applying events'),
  endpoint({
    operation: 'redriveProjection',
    route: 'POST /projections/{name}/redrive',
    summary: 'Try dead-lettered streams again, all or one',
    params,
    body: z.object({
      stream: optional(text()).describe('Only this one'),
      dry_run: withDefault(z.boolean(), false).describe('Only count'),
    }),
    answers: { 200: Redriven },
    errors: REFUSED,
    handle(call) {
      const { stream, dry_run: dryRun } = call.body
      const wanted = stream === null ? { dryRun } : { stream, dryRun }
      return recorded<z.input<typeof Redriven>>(
        call,
        dryRun ? null : 'redrive',
        { stream },
        (projections, name) => projections.redrive(name, wanted),
      )
    },
  }),
]

function progressOf(rebuild: z.output<typeof Projection>['rebuild']): string {
  if (!rebuild) return ''
  const share = rebuild.head > 0 ? Math.floor((100 * rebuild.position) / rebuild.head) : 100
  return `${share} % (${rebuild.state}, switch ${rebuild.switch})`
}
