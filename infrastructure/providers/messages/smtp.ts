import { createTransport } from 'nodemailer'
import { technicalDeadline } from '../../../application/commands/technical-deadlines.ts'
import type { Messages, OutgoingMessage } from '../../../application/ports/messages.ts'
import { ProviderRefused, ProviderUnavailable } from '../../../application/ports/provider.ts'

/** Real milliseconds that a server may take to answer. */
const PATIENCE_MS = 10_000

/**
 * Emails over SMTP.
 *
 * `smtp://` (with STARTTLS where the server has it) or `smtps://`, user and password in the address. `?from=` names the
 * service's own sender; without it that is the user, or `no-reply` at the server.
 */
export class SmtpMessages implements Messages {
  readonly #transport: ReturnType<typeof createTransport>
  readonly #from: string
  readonly #domain: string

  /** @param url `SMTP_URL`. Nobody is contacted before there is something to send. */
  constructor(url: string) {
    const { protocol, hostname, port, username, password, searchParams } = new URL(url)
    const user = decodeURIComponent(username)
    const isSecure = protocol === 'smtps:'
    this.#from = searchParams.get('from') ?? (user.includes('@') ? user : `no-reply@${hostname}`)
    this.#domain = this.#from.replace(/^.*@/s, '').replace(/[^\w.-]/g, '')
    this.#transport = createTransport({
      host: hostname.replace(/^\[(.*)\]$/, '$1'),
      port: port === '' ? (isSecure ? 465 : 587) : Number(port),
      secure: isSecure,
      ...(user !== '' && { auth: { user, pass: decodeURIComponent(password) } }),
      connectionTimeout: technicalDeadline(PATIENCE_MS),
      greetingTimeout: technicalDeadline(PATIENCE_MS),
      socketTimeout: technicalDeadline(PATIENCE_MS),
      disableFileAccess: true,
      disableUrlAccess: true,
    })
  }

  async send({ key, to, from, subject, text }: OutgoingMessage): Promise<void> {
    try {
      await this.#transport.sendMail({
        from: from ?? this.#from,
        subject: subject ?? '',
        text,
        // an address as it is: lists and names are no recipients
        to: { name: '', address: to },
        messageId: `<${key}@${this.#domain}>`,
      })
    } catch (error) {
      // 5yz is for good, by RFC 5321; what the server says may name the recipient
      const { responseCode, code } = error as { responseCode?: number; code?: string }
      const isForGood =
        code === 'EENVELOPE' || code === 'EMESSAGE'
          ? responseCode === undefined || responseCode >= 500
          : code === 'EADDRESS'
      if (isForGood) throw new ProviderRefused('The mail server refused the message')
      throw new ProviderUnavailable('The mail server could not be reached, or did not take the message')
    }
  }
}
