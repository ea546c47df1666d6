import { recordOperatorAction } from '../../application/operations/operator-actions.ts'
import { FAULT_POINTS } from '../../application/ports/faults.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { ProjectionError } from '../../projections/runtime/projections.ts'
import { sendJson } from '../http/answers.ts'
import { HttpError } from '../http/errors.ts'
import type { Route } from '../http/server.ts'
import { badRequest } from './fields.ts'
import { type Answer, accepted, type Call, conflict, type OperatorHost, operation } from './operations.ts'
import type { ProbeAccess } from './probe-access.ts'
import type { Health, OperatorServices, ProjectionOperations } from './services.ts'

const DRAIN_SECONDS = 30
const MAX_DRAIN_SECONDS = 600
const FAULT_MODES = ['unreachable', 'decline', 'timeout', 'hold'] as const
const MAX_FAULTS = 10_000

/** Clock, projections, work, faults. What changes the machinery is recorded before it is done. */
export function machineryRoutes(host: OperatorHost, services: OperatorServices): readonly Route[] {
  const { app } = host
  const projections = refusing(services.projections)
  const record = (call: Call, action: string, target: string, details = {}) =>
    recordOperatorAction(app, { action, target, details }, call.context())
  const clock = () => ({ now: isoTime(app.clock.now()), kind: app.clock.kind })

  /** A verb on one projection, which must exist before it is recorded. */
  const verb = (name: string, run: (projection: string, call: Call) => Promise<Answer>): Route =>
    operation(host, 'POST', `/projections/:name/${name}`, async (call) => {
      const projection = call.parameter('name')
      await projections.show(projection)
      return run(projection, call)
    })

  return [
    operation(host, 'GET', '/clock', async () => ({ data: clock() })),
    operation(host, 'POST', '/clock/advance', async (call) => {
      const { fields } = await call.body()
      const seconds = fields.optionalAmount('seconds')
      const to = fields.optionalTime('to')
      if (seconds !== null && to !== null) throw badRequest('seconds and to cannot be given together')
      const by =
        seconds !== null ? { seconds } : to !== null ? { to } : fields.fail('seconds', 'or to is required')
      accepted(await services.advanceClock(by, call.context()))
      return { data: clock() }
    }),
    operation(host, 'POST', '/drain', async (call) => {
      const { fields } = await call.body()
      const seconds = fields.optionalWholeNumber('timeout_seconds') ?? DRAIN_SECONDS
      if (seconds > MAX_DRAIN_SECONDS) fields.fail('timeout_seconds', `must not exceed ${MAX_DRAIN_SECONDS}`)
      const outcome = await services.drain(seconds * 1000)
      if (!outcome.drained) {
        const left = outcome.waiting_for === undefined ? '' : `: ${JSON.stringify(outcome.waiting_for)}`
        throw new HttpError(504, null, `The service did not come to rest within ${seconds} s${left}`)
      }
      return { data: { drained: true, ...clock() } }
    }),

    operation(host, 'GET', '/projections', async () => ({ data: await projections.list() })),
    operation(host, 'GET', '/projections/:name', async (call) => ({
      data: await projections.show(call.parameter('name')),
    })),
    verb('rebuild', async (projection, call) => {
      const { fields } = await call.body()
      const how = fields.word('switch', ['auto', 'manual'], 'auto')
      await record(call, 'rebuild', projection, { switch: how })
      return { status: 202, data: await projections.rebuild(projection, { switch: how }) }
    }),
    verb('switch', async (projection, call) => {
      await record(call, 'switch', projection)
      return { data: await projections.switch(projection) }
    }),
    verb('rollback', async (projection, call) => {
      await record(call, 'rollback', projection)
      const data = (await projections.rollback(projection)) as { switched: boolean }
      return { status: data.switched ? 200 : 202, data }
    }),
    verb('cancel', async (projection, call) => {
      await record(call, 'cancel-rebuild', projection)
      return { data: await projections.cancel(projection) }
    }),
    verb('pause', async (projection, call) => {
      await record(call, 'pause', projection)
      return { data: await projections.pause(projection) }
    }),
    verb('resume', async (projection, call) => {
      await record(call, 'resume', projection)
      return { data: await projections.resume(projection) }
    }),
    verb('redrive', async (projection, call) => {
      const { fields } = await call.body()
      const dryRun = fields.flag('dry_run', false)
      const stream = fields.optionalText('stream')
      if (!dryRun) await record(call, 'redrive', projection, { stream })
      return {
        data: await projections.redrive(projection, stream === null ? { dryRun } : { stream, dryRun }),
      }
    }),

    operation(host, 'GET', '/work', async () => ({ data: await services.work.overview() })),
    operation(host, 'POST', '/work/redrive', async (call) => {
      const { fields } = await call.body()
      const dryRun = fields.flag('dry_run', false)
      const one = ['process_manager', 'kind', 'key'].some((name) => fields.raw(name) !== null)
      const key = one
        ? {
            processManager: fields.text('process_manager'),
            kind: fields.text('kind'),
            key: fields.text('key'),
          }
        : null
      if (!dryRun) await record(call, 'redrive', key ? `${key.processManager}/${key.kind}` : 'work')
      return { data: { redriven: await services.work.redrive({ key, dryRun }), dry_run: dryRun } }
    }),
    operation(host, 'POST', '/work/discard', async (call) => {
      const { fields } = await call.body()
      const dryRun = fields.flag('dry_run', false)
      const chosen = {
        processManager: fields.text('process_manager'),
        kind: fields.text('kind'),
        key: fields.optionalText('key'),
      }
      const there = accepted(await services.work.discard({ ...chosen, dryRun: true }))
      if (dryRun) return { data: { discarded: there, dry_run: dryRun } }
      await record(call, 'discard', `${chosen.processManager}/${chosen.kind}`, { key: chosen.key })
      return {
        data: { discarded: accepted(await services.work.discard({ ...chosen, dryRun })), dry_run: dryRun },
      }
    }),

    operation(host, 'POST', '/faults', async (call) => {
      const { fields } = await call.body()
      const point = fields.optionalWord('point', FAULT_POINTS) ?? fields.fail('point', 'is required')
      const times = fields.optionalWholeNumber('times') ?? 1
      const given = fields.optionalWord('mode', FAULT_MODES)
      if (given === null && times > 0) fields.fail('mode', 'is required')
      if (times > MAX_FAULTS) fields.fail('times', `must not exceed ${MAX_FAULTS}`)
      if (app.clock.kind !== 'virtual') throw conflict('Faults are injected only with CLOCK=virtual')
      const mode = given ?? 'unreachable'
      await record(call, times === 0 ? 'clear-fault' : 'inject-fault', point, { mode: given, times })
      await app.faults.inject(point, mode, times)
      return { data: { point, mode: times === 0 ? null : mode, times } }
    }),
  ]
}

const STATUS = { not_found: 404, conflict: 409, unavailable: 503 } as const

/** The operations of projections, with what is not possible as the refusal that answers it. */
function refusing(operations: ProjectionOperations): ProjectionOperations {
  const refused = async <Result>(run: () => Promise<Result>): Promise<Result> => {
    try {
      return await run()
    } catch (error) {
      if (error instanceof ProjectionError) {
        const headers: Record<string, string> = error.kind === 'unavailable' ? { 'Retry-After': '5' } : {}
        throw new HttpError(STATUS[error.kind], null, error.message, headers)
      }
      throw error
    }
  }
  return {
    list: () => refused(() => operations.list()),
    show: (name) => refused(() => operations.show(name)),
    rebuild: (name, options) => refused(() => operations.rebuild(name, options)),
    switch: (name) => refused(() => operations.switch(name)),
    rollback: (name) => refused(() => operations.rollback(name)),
    cancel: (name) => refused(() => operations.cancel(name)),
    pause: (name) => refused(() => operations.pause(name)),
    resume: (name) => refused(() => operations.resume(name)),
    redrive: (name, options) => refused(() => operations.redrive(name, options)),
  }
}

/** Routes for probes, outside the prefix; without a token where `access` lets the address pass. */
export function probeRoutes(services: OperatorServices, access: ProbeAccess): readonly Route[] {
  const probe = (path: string, look: () => Health | Promise<Health>): Route => ({
    method: 'GET',
    path,
    async handle(request, response) {
      access.require(request, response)
      const health = await look()
      sendJson(response, health.ok ? 200 : 503, health)
    },
  })
  return [
    probe('/healthz', () => services.health()),
    probe('/readyz', () => services.readiness()),
    {
      method: 'GET',
      path: '/metrics',
      async handle(request, response) {
        access.require(request, response)
        const { contentType, text } = await services.metrics()
        response.statusCode = 200
        response.setHeader('Content-Type', contentType)
        response.setHeader('Content-Length', Buffer.byteLength(text))
        response.end(text)
      },
    },
  ]
}
