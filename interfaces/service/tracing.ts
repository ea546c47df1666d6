import type { Application } from '../../application/commands/application.ts'
import { isTraced, keepTraces, traced } from '../../application/ports/tracing.ts'
import type { Config } from '../../infrastructure/config/config.ts'
import type { Logger } from '../../infrastructure/telemetry/logger.ts'

/** Has traces kept where an address for them is set. @returns what sends the last ones and ends it. */
export async function openTracing(
  { tracesUrl }: Pick<Config, 'tracesUrl'>,
  logger: Logger,
): Promise<() => Promise<void>> {
  if (tracesUrl === null) return async () => undefined
  // nothing of the SDK is loaded without need
  const { OpenTelemetryTraces } = await import('../../infrastructure/telemetry/traces.ts')
  const traces = new OpenTelemetryTraces(tracesUrl, (reason) => logger.warn('traces not sent', { reason }))
  keepTraces(traces)
  return () => {
    keepTraces(null)
    return traces.close()
  }
}

type Providers = Pick<
  Application,
  'processors' | 'formerProcessors' | 'bankLinks' | 'bankRails' | 'financing' | 'messages'
>

/** Providers of which each call is a step, those that are simulated, too; as they are while no steps are kept. */
export function tracedProviders(providers: Providers): Providers {
  if (!isTraced()) return providers
  const both = <Port extends object>(name: string, { live, sandbox }: { live: Port; sandbox: Port }) => ({
    live: tracedCalls(name, live),
    sandbox: tracedCalls(name, sandbox),
  })
  return {
    processors: both('card-processor', providers.processors),
    formerProcessors: providers.formerProcessors.map((one) => tracedCalls('card-processor', one)),
    bankLinks: both('bank-link', providers.bankLinks),
    bankRails: both('bank-rail', providers.bankRails),
    financing: tracedCalls('financing', providers.financing),
    messages: tracedCalls('messages', providers.messages),
  }
}

/** What a port answers from what it was given, without asking anybody, or page by page. */
const NO_CALLS = ['readNotices', 'readNotice', 'noticesSince']

function tracedCalls<Port extends object>(name: string, port: Port): Port {
  return new Proxy(port, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property, target)
      if (typeof member !== 'function' || NO_CALLS.includes(String(property))) return member
      return (...given: unknown[]) =>
        traced({ name: `${name} ${String(property)}`, kind: 'client', attributes: {} }, () =>
          member.apply(target, given),
        )
    },
  })
}
