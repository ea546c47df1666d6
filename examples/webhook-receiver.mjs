// node examples/webhook-receiver.mjs [port]: prints the webhooks that come, each after its signature was verified under
// the secret in COMPSTREAM_WEBHOOK_SECRET. Default port 3000. Run npm run build first.

import { createServer } from 'node:http'
import { verifyWebhook } from 'compstream/client'

const secret = process.env.COMPSTREAM_WEBHOOK_SECRET
const port = Number(process.argv[2] ?? 3000)
if (!secret) {
  process.stderr.write('COMPSTREAM_WEBHOOK_SECRET: not set\n')
  process.exit(1)
}

createServer(async (request, response) => {
  const parts = []
  for await (const part of request) parts.push(part)
  try {
    // the bytes as they came: a body that was parsed and written again has another signature
    const event = verifyWebhook({ payload: Buffer.concat(parts), headers: request.headers, secret })
    response.writeHead(200).end()
    process.stdout.write(`verified ${event.type} ${event.id} ${JSON.stringify(event.data)}\n`)
  } catch (error) {
    response.writeHead(400).end()
    process.stdout.write(`refused: ${error.message}\n`)
  }
}).listen(port, '127.0.0.1', () => process.stdout.write(`Listening on http://127.0.0.1:${port}\n`))
