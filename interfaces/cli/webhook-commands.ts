import type { Command } from 'commander'
import { WEBHOOK_EVENT_TYPES } from '../../domain/webhooks/event-types.ts'
import { moreOf } from './endpoint-commands.ts'
import { type CliIo, UsageError } from './io.ts'
import { resource, rows } from './output.ts'
import { PartnerClient, type PartnerOptions, partnerOptions } from './partner-client.ts'
import { secretHelp } from './secrets.ts'
import { seconds, untilStopped, verb } from './verbs.ts'
import type { ListenOptions } from './webhook-listen.ts'
import { triggerWebhook } from './webhook-trigger.ts'

const POLL_SECONDS = 1

interface SpanOptions {
  readonly from?: string
  readonly to?: string
}

/** webhooks events, resend, listen, trigger: for partners that catch up, or develop a receiver of webhooks. */
export function webhookCommands(io: CliIo, program: Command): void {
  const webhooks = program
    .command('webhooks')
    .description('Catch up on webhooks that were missed, and develop what receives them, as a partner.')
  verb<PartnerOptions & SpanOptions & { readonly type?: string; readonly page?: string }>(
    io,
    partnerOptions(
      webhooks
        .command('events')
        .description('events of the last 30 days, newest first, whether or not a webhook took them')
        .option('--type <type>', WEBHOOK_EVENT_TYPES.join(', '))
        .option('--from <time>', 'raised at or after')
        .option('--to <time>', 'raised at or before')
        .option('--page <number>', 'from 1'),
      'payments',
    ),
    async ({ options }) => {
      const { type, from, to, page } = options
      const given = Object.entries({ type, from, to, page }).filter(([, value]) => value !== undefined)
      const client = await PartnerClient.from(io, options, 'payments')
      const answer = await client.send('GET', `/events?${new URLSearchParams(given as [string, string][])}`)
      const columns = { 'event id': 'event_id', type: 'event_type', raised: 'created_at', payload: 'payload' }
      // a service of the release before does not say so
      const { from: listedFrom } = answer.pagination as { readonly from?: string }
      const begin = listedFrom === undefined ? '' : `\nListed from ${listedFrom} on`
      const text = rows(answer.data as readonly unknown[], columns, 'events')
      return { json: answer, text: `${text}${moreOf(answer.pagination)}${begin}` }
    },
  )
  verb<PartnerOptions & SpanOptions & { readonly event?: readonly string[] }>(
    io,
    partnerOptions(
      webhooks
        .command('resend')
        .description('send events to a webhook subscription again: those named, or those of a span')
        .argument('<subscription>')
        .option('--event <id...>', 'these events')
        .option('--from <time>', 'with --to: those raised at or after')
        .option('--to <time>', 'those raised at or before'),
      'payments',
    ),
    async ({ args, options }) => {
      const { event: event_ids, from, to } = options
      const client = await PartnerClient.from(io, options, 'payments')
      const path = `/webhooks/${encodeURIComponent(args[0]!)}/resend`
      return resource(await client.call('POST', path, { event_ids, from, to }))
    },
  )
  const secret = secretHelp('the secret to sign with', 'COMPSTREAM_WEBHOOK_SECRET')
  verb<ListenOptions>(
    io,
    partnerOptions(
      webhooks
        .command('listen')
        .description(
          'post each new delivery of a subscription to a local address, once, signed with a secret that it prints; ' +
            'with --json one line of JSON for each. It ends with Ctrl-C',
        )
        .requiredOption('--forward-to <address>', 'for example http://localhost:3000/webhooks')
        .option('--subscription <id>', 'default: the only one that there is')
        .option('--webhook-secret <secret>', secret.value)
        .option('--webhook-secret-file <file>', `${secret.file}; default: a new one`)
        .option('--poll <seconds>', 'between looks for new deliveries', seconds, POLL_SECONDS),
      'payments',
    ),
    async ({ options }) => {
      const { listen } = await import('./webhook-listen.ts')
      const client = await PartnerClient.from(io, options, 'payments')
      return untilStopped((signal) => listen(io, client, options, signal))
    },
  )
  verb<PartnerOptions & { readonly subscription?: string; readonly of?: string }>(
    io,
    partnerOptions(
      webhooks
        .command('trigger')
        .description(
          'make an event happen, with a sandbox key: to a payment link or subscription that --of names, else as a ' +
            'sample that a subscription is sent once',
        )
        .argument('<type>', WEBHOOK_EVENT_TYPES.join(', '))
        .option('--of <id>', 'the payment link or subscription that it happens to')
        .option('--subscription <id>', 'the webhook subscription; default: the only one that there is'),
      'payments',
    ),
    async ({ args, options }) => {
      const type = WEBHOOK_EVENT_TYPES.find((one) => one === args[0])
      if (!type)
        throw new UsageError(`There is no event ${args[0]}; there are ${WEBHOOK_EVENT_TYPES.join(', ')}.`)
      const client = await PartnerClient.from(io, options, 'payments')
      return resource(await triggerWebhook(client, type, options))
    },
  )
}
