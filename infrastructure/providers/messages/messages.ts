import type { FaultPoint, Faults } from '../../../application/ports/faults.ts'
import type { Messages, OutgoingMessage } from '../../../application/ports/messages.ts'
import { ProviderRefused, ProviderUnavailable } from '../../../application/ports/provider.ts'
import { SmsMessages } from './sms.ts'
import { SmtpMessages } from './smtp.ts'

type Channel = OutgoingMessage['channel']

const FAULTS: Readonly<Record<Channel, FaultPoint>> = { email: 'mail', sms: 'text' }

/** Each message by the provider of its channel, and into what operators inject before it gets there. */
export class MessagesByChannel implements Messages {
  readonly #providers: Readonly<Record<Channel, Messages>>
  readonly #faults: Pick<Faults, 'take'>

  /**
   * @param urls null where no provider delivers a channel.
   * @param recorded takes what no provider delivers.
   */
  constructor(
    urls: { readonly smtpUrl: string | null; readonly smsUrl: string | null },
    recorded: Messages,
    faults: Pick<Faults, 'take'>,
  ) {
    this.#providers = {
      email: urls.smtpUrl === null ? recorded : new SmtpMessages(urls.smtpUrl),
      sms: urls.smsUrl === null ? recorded : new SmsMessages(urls.smsUrl),
    }
    this.#faults = faults
  }

  async send(message: OutgoingMessage): Promise<void> {
    const { channel } = message
    const fault = await this.#faults.take(FAULTS[channel], ['unreachable', 'decline', 'timeout'])
    if (fault === 'unreachable')
      throw new ProviderUnavailable('The provider of messages could not be reached')
    if (fault === 'decline') throw new ProviderRefused('The provider of messages refused the message')
    await this.#providers[channel].send(message)
    if (fault === 'timeout') throw new ProviderUnavailable('The provider of messages did not answer in time')
  }
}
