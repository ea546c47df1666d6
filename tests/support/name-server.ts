import { createSocket } from 'node:dgram'

/** A name server that knows TXT records alone (RFC 1035); every other name does not exist. */
export interface NameServer {
  /** `address:port`, as `DNS_SERVERS` takes it. */
  readonly address: string
  /** What it knows from now on: texts by name. */
  readonly records: Map<string, readonly string[]>
  /** Names whose texts were asked for, in order. */
  readonly asked: readonly string[]
  /** Whether it fails at every question from now on. */
  isFailing: boolean
  stop(): Promise<void>
}

const TXT = 16
const [ANSWER, FAILURE, NO_SUCH_NAME] = [0x8180, 0x8182, 0x8183]

export async function startNameServer(): Promise<NameServer> {
  const records = new Map<string, readonly string[]>()
  const asked: string[] = []
  const socket = createSocket('udp4')
  socket.on('message', (message, { port, address }) => {
    const { name, type, end } = questionOf(message)
    if (type === TXT) asked.push(name.toLowerCase())
    const known = records.get(name.toLowerCase())
    const texts = type === TXT && !server.isFailing ? (known ?? []) : []
    const head = Buffer.from(message.subarray(0, 12))
    head.writeUInt16BE(server.isFailing ? FAILURE : known === undefined ? NO_SUCH_NAME : ANSWER, 2)
    head.writeUInt16BE(1, 4)
    head.writeUInt16BE(texts.length, 6)
    head.writeUInt32BE(0, 8)
    socket.send(Buffer.concat([head, message.subarray(12, end), ...texts.map(recordOf)]), port, address)
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  const server: NameServer = {
    address: `127.0.0.1:${socket.address().port}`,
    records,
    asked,
    isFailing: false,
    stop: () => new Promise((resolve) => socket.close(() => resolve())),
  }
  return server
}

function questionOf(message: Buffer) {
  const labels: string[] = []
  let at = 12
  for (let length = message[at]!; length > 0; length = message[at]!) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.'), type: message.readUInt16BE(at + 1), end: at + 5 }
}

/** A text in parts of at most 255 bytes, for the name of the question. */
function recordOf(text: string): Buffer {
  const parts = text.match(/.{1,255}/gs) ?? ['']
  const data = Buffer.concat(parts.map((part) => Buffer.from([part.length, ...Buffer.from(part)])))
  const head = Buffer.from([0xc0, 12, 0, TXT, 0, 1, 0, 0, 0, 0, 0, 0])
  head.writeUInt16BE(data.length, 10)
  return Buffer.concat([head, data])
}
