import type { Command } from 'commander'
import { WEBHOOK_EVENT_TYPES } from '../../domain/webhooks/event-types.ts'
import { type CliIo, UsageError } from './io.ts'
import { resource } from './output.ts'
import { PartnerClient, type PartnerOptions, partnerOptions } from './partner-client.ts'
import { secretHelp } from './secrets.ts'
import { seconds, untilStopped, verb } from './verbs.ts'
import type { ListenOptions } from './webhook-listen.ts'
import { triggerWebhook } from './webhook-trigger.ts'

const POLL_SECONDS = 1

/** webhooks listen, trigger: for partners that develop a receiver of webhooks. */
export function webhookCommands(io: CliIo, program: Command): void {
  const webhooks = program.command('webhooks').description('webhooks of a partner, while it develops')
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
