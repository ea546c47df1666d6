import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'

/** A message as the server took it. */
interface ReceivedMail {
  readonly from: string
  readonly to: readonly string[]
  /** Headers and body, lines ending in `\n`. */
  readonly data: string
}

/** A mail server that speaks as much SMTP as is needed to take messages, and answers with what it is told to. */
export interface MailServer {
  readonly port: number
  readonly received: readonly ReceivedMail[]
  /** What the next commands of a kind are answered with; 0: nothing. */
  answer(command: 'MAIL' | 'RCPT' | 'DATA', code: number): void
  close(): Promise<void>
}

export async function startMailServer(): Promise<MailServer> {
  const received: ReceivedMail[] = []
  const codes = new Map<string, number>()
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    let mail = { from: '', to: [] as string[] }
    let data: string[] | null = null
    let rest = ''
    socket.write('220 mail.example ESMTP\r\n')
    socket.on('data', (bytes) => {
      const lines = (rest + bytes.toString()).split('\r\n')
      rest = lines.pop()!
      for (const line of lines) take(line)
    })
    const say = (command: string, text: string, fine: number): boolean => {
      const code = codes.get(command) ?? fine
      if (code !== 0) socket.write(`${code} ${code < 400 ? text : 'no'}\r\n`)
      return code !== 0 && code < 400
    }
    const take = (line: string): void => {
      if (data) {
        if (line !== '.') data.push(line.startsWith('..') ? line.slice(1) : line)
        else {
          const text = data.join('\n')
          data = null
          if (say('DATA', 'taken', 250)) received.push({ ...mail, data: text })
        }
        return
      }
      const [verb = ''] = line.toUpperCase().split(' ')
      const address = /<(.*)>/.exec(line)?.[1] ?? ''
      if (verb === 'EHLO') socket.write('250 mail.example\r\n')
      else if (verb === 'MAIL') {
        mail = { from: address, to: [] }
        say('MAIL', 'go on', 250)
      } else if (verb === 'RCPT') {
        if (say('RCPT', 'go on', 250)) mail.to.push(address)
      } else if (verb === 'DATA') {
        data = []
        socket.write('354 go on\r\n')
      } else if (verb === 'QUIT') socket.end('221 bye\r\n')
      else socket.write('250 well\r\n')
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    received,
    answer: (command, code) => void codes.set(command, code),
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
