import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Faults } from '../../../application/ports/faults.ts'
import type { Messages, OutgoingMessage } from '../../../application/ports/messages.ts'
import { ProviderRefused, ProviderUnavailable } from '../../../application/ports/provider.ts'
import { MessagesByChannel } from '../../../infrastructure/providers/messages/messages.ts'
import { SmsMessages } from '../../../infrastructure/providers/messages/sms.ts'
import { SmtpMessages } from '../../../infrastructure/providers/messages/smtp.ts'
import { type MailServer, startMailServer } from '../../support/mail-server.ts'

/** Providers that deliver, against servers that speak their protocols. */

const email: OutgoingMessage = {
  key: 'payment-link-1-email',
  channel: 'email',
  to: 'office@tidewater.example',
  from: '"Acme Billing" <billing@acme.example>',
  subject: 'Acmé: Full payment',
  dataSubject: 'employer/1',
  text: 'Pay here:\n\nhttps://pay.example/pay/1\n',
}
const sms: OutgoingMessage = {
  key: 'payment-link-1-sms',
  channel: 'sms',
  to: '+15035550147',
  from: null,
  subject: null,
  text: 'Pay here: https://pay.example/pay/1',
  dataSubject: 'employer/1',
}

/** Nothing listens there. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

describe('email over SMTP', () => {
  let server: MailServer
  let messages: Messages
  beforeEach(async () => {
    server = await startMailServer()
    messages = new SmtpMessages(`smtp://127.0.0.1:${server.port}?from=pay%40compstream.example`)
  })
  afterEach(() => server.close())

  test('is taken with its sender, recipient, subject and text', async () => {
    await messages.send(email)
    const [mail, ...more] = server.received
    expect(more).toEqual([])
    expect(mail).toMatchObject({ from: 'billing@acme.example', to: ['office@tidewater.example'] })
    expect(mail!.data).toMatch(/^From: "?Acme Billing"? <billing@acme\.example>$/m)
    expect(mail!.data).toMatch(/^To: office@tidewater\.example$/m)
    expect(mail!.data).toMatch(/^Subject: =\?UTF-8\?/m)
    expect(mail!.data).toMatch(/^Message-ID: <payment-link-1-email@compstream\.example>$/m)
    expect(mail!.data).toContain('https://pay.example/pay/1')
  })

  test('goes out in the name of the service where nobody else is named', async () => {
    await messages.send({ ...email, from: null })
    expect(server.received[0]!.from).toBe('pay@compstream.example')
    const unnamed = new SmtpMessages(`smtp://127.0.0.1:${server.port}`)
    await unnamed.send({ ...email, from: null })
    expect(server.received[1]!.from).toBe('no-reply@127.0.0.1')
  })

  test.each(['a@b.example, c@d.example', 'a@b.example\r\nBcc: c@d.example', '<a@b.example>,<c@d.example>'])(
    'goes to one recipient, whatever stands in its address (%j)',
    async (to) => {
      await messages.send({ ...email, to }).catch(() => undefined)
      expect(server.received.every((mail) => mail.to.length <= 1)).toBe(true)
      expect(server.received.map(({ data }) => data).join()).not.toMatch(/^Bcc/m)
    },
  )

  test.each([
    ['RCPT', 550, ProviderRefused],
    ['RCPT', 450, ProviderUnavailable],
    ['MAIL', 554, ProviderRefused],
    ['MAIL', 421, ProviderUnavailable],
    ['DATA', 554, ProviderRefused],
    ['DATA', 451, ProviderUnavailable],
  ] as const)('that is answered %s %i is %o', async (command, code, expected) => {
    server.answer(command, code)
    const failure = await messages.send(email).catch((error) => error)
    expect(failure).toBeInstanceOf(expected)
    expect(failure.message).not.toContain('tidewater')
  })

  test('to nobody who listens is unavailable', async () => {
    const nobody = new SmtpMessages(`smtp://127.0.0.1:${await closedPort()}`)
    await expect(nobody.send(email)).rejects.toThrow(ProviderUnavailable)
  })
})

describe('texts over HTTP', () => {
  let server: Server
  let status: number
  let received: { path: string; headers: IncomingHttpHeaders; body: URLSearchParams }[]
  const address = (path = '') =>
    `http://AC1:to%2Fken@127.0.0.1:${(server.address() as AddressInfo).port}${path}?from=%2B12025550123`

  beforeEach(async () => {
    status = 201
    received = []
    server = createServer((request, response) => {
      let text = ''
      request.on('data', (bytes) => {
        text += bytes
      })
      request.on('end', () => {
        received.push({ path: request.url!, headers: request.headers, body: new URLSearchParams(text) })
        response.writeHead(status, { Location: 'http://127.0.0.1:1/' }).end('{"sid":"SM1"}')
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
  })
  afterEach(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })

  test('are posted as Twilio takes them', async () => {
    await new SmsMessages(address()).send(sms)
    await new SmsMessages(address('/send')).send({ ...sms, from: '+13035550100' })
    expect(received.map(({ path }) => path)).toEqual(['/2010-04-01/Accounts/AC1/Messages.json', '/send'])
    const [first, second] = received
    expect(first!.headers).toMatchObject({
      authorization: `Basic ${Buffer.from('AC1:to/ken').toString('base64')}`,
      'content-type': expect.stringContaining('application/x-www-form-urlencoded'),
    })
    expect(Object.fromEntries(first!.body)).toEqual({ To: sms.to, From: '+12025550123', Body: sms.text })
    expect(second!.body.get('From')).toBe('+13035550100')
  })

  test.each([
    [400, ProviderRefused],
    [422, ProviderRefused],
    [302, ProviderUnavailable],
    [401, ProviderUnavailable],
    [429, ProviderUnavailable],
    [500, ProviderUnavailable],
  ] as const)('that are answered %i are %o', async (code, expected) => {
    status = code
    await expect(new SmsMessages(address()).send(sms)).rejects.toThrow(expected)
    expect(received).toHaveLength(1)
  })

  test('to nobody who listens are unavailable', async () => {
    const nobody = new SmsMessages(`http://127.0.0.1:${await closedPort()}`)
    await expect(nobody.send(sms)).rejects.toThrow(ProviderUnavailable)
  })
})

describe('messages by channel', () => {
  test('are recorded where no provider delivers, and meet the faults of their point', async () => {
    const recorded: OutgoingMessage[] = []
    const asked: string[] = []
    let fault: Awaited<ReturnType<Faults['take']>> = null
    const messages = new MessagesByChannel(
      { smtpUrl: null, smsUrl: null },
      { send: async (message) => void recorded.push(message) },
      {
        async take(point) {
          asked.push(point)
          return fault
        },
      },
    )
    await messages.send(email)
    await messages.send(sms)
    expect([recorded, asked]).toEqual([
      [email, sms],
      ['mail', 'text'],
    ])
    fault = 'unreachable'
    await expect(messages.send(email)).rejects.toThrow(ProviderUnavailable)
    fault = 'decline'
    await expect(messages.send(email)).rejects.toThrow(ProviderRefused)
    expect(recorded).toHaveLength(2)
    // taken over, and nobody heard of it
    fault = 'timeout'
    await expect(messages.send(email)).rejects.toThrow(ProviderUnavailable)
    expect(recorded).toHaveLength(3)
  })
})
