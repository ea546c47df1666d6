// node examples/embedded-checkout.mjs [port]: a page that sells a policy, with the checkout of the service in it. Default
// port 3001. COMPSTREAM_CLIENT_ID and COMPSTREAM_CLIENT_SECRET are the partner's, COMPSTREAM_SESSION the body of
// POST /payment-sessions as JSON. http://localhost:3001 must be among the embed_origins of the tenant.

import { createServer } from 'node:http'

const {
  COMPSTREAM_CLIENT_ID: clientId,
  COMPSTREAM_CLIENT_SECRET: clientSecret,
  COMPSTREAM_SESSION: session,
  COMPSTREAM_PAYMENTS_URL: payments = 'http://127.0.0.1:4003',
  COMPSTREAM_PORTAL_URL: portal = 'http://127.0.0.1:4004',
} = process.env
const port = Number(process.argv[2] ?? 3001)
if (!clientId || !clientSecret || !session) {
  process.stderr.write('COMPSTREAM_CLIENT_ID, COMPSTREAM_CLIENT_SECRET, COMPSTREAM_SESSION: not set\n')
  process.exit(1)
}

/** Creates a session for whoever opens the page: the credentials stay here. */
async function createSession() {
  const answer = await fetch(`${payments}/api/v1/payment-sessions`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'X-Client-ID': clientId,
      'X-Client-Secret': clientSecret,
    },
    body: JSON.stringify({ ...JSON.parse(session), mode: 'embedded' }),
  })
  const { data, message } = await answer.json()
  if (!answer.ok) throw new Error(message)
  return data
}

const page = ({ id, client_secret }) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Your policy</title>
<h1>Your policy</h1>
<p id="state" role="status">Waiting for your payment.</p>
<div id="checkout"></div>
<script src="${portal}/compstream.js"></script>
<script>
  compstream.mount('#checkout', {
    session: ${JSON.stringify(id)},
    clientSecret: ${JSON.stringify(client_secret)},
    onStatus(status) {
      if (status === 'paid') document.getElementById('state').textContent = 'Thank you for your payment.'
    },
  })
</script>
`

const server = createServer(async (request, response) => {
  if (request.url !== '/') {
    response.writeHead(404).end()
    return
  }
  try {
    const html = page(await createSession())
    // the page holds a secret: nobody keeps it
    response
      .writeHead(200, { 'Content-Type': 'text/html; charset=utf-8', 'Cache-Control': 'no-store' })
      .end(html)
  } catch (error) {
    response.writeHead(502, { 'Content-Type': 'text/plain' }).end(error.message)
  }
})
server.listen(port, '127.0.0.1', () =>
  process.stdout.write(`Listening on http://localhost:${server.address().port}\n`),
)
