import { spawnSync } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { exampleIn, expectQuickstart, quickstartOf, ran } from '../../support/quickstarts.ts'
import { sharedService } from '../../support/service.ts'

/** The Python client of partners against the service as it is. */

const folder = resolve('clients/python')
const has = (program: string) => spawnSync(program, ['--version']).status === 0

test.skipIf(!has('mypy'))('the Python client has types that mypy --strict finds nothing wrong with', () => {
  const cache = join(tmpdir(), 'compstream-mypy')
  const options = ['--strict', '--python-version', '3.11', '--cache-dir', cache]
  const { status, stdout } = spawnSync('mypy', [...options, 'compstream'], { cwd: folder, encoding: 'utf8' })
  expect({ status, stdout }).toMatchObject({ status: 0 })
})

describe.skipIf(!has('python3'))('the Python client (needs python3)', () => {
  const python = (code: string, env: Record<string, string> = {}) =>
    ran('python3', ['-B', '-'], code, { env: { PATH: process.env.PATH, PYTHONPATH: folder, ...env } })

  test('runs the quickstart of its README: it sells, reports, debits and catches up', async () => {
    const env = await quickstartOf(await sharedService())
    const example = await exampleIn(join(folder, 'README.md'), 'python')
    for (const RUN_ID of ['p-17', 'p-17']) expectQuickstart(await python(example, { ...env, RUN_ID }))
    const { stdout } = await python(
      `
import os
from compstream import PaymentsClient
env = os.environ
payments = PaymentsClient(env["COMPSTREAM_PAYMENTS_URL"], env["COMPSTREAM_CLIENT_ID"], env["COMPSTREAM_CLIENT_SECRET"])
page = payments.page_list_events(limit=1, from_="2020-01-01")
print(len(page["data"]), page["pagination"]["limit"], page["pagination"]["from"] > "2020-01-01")
`,
      env,
    )
    expect(stdout).toBe('1 1 True\n')
    const refused = await python(example, { ...env, EMPLOYER_FEIN: '12-0000000', RUN_ID: 'p-18' })
    expect(refused).toMatchObject({ code: 1 })
    expect(refused.stderr).toMatch(/^404 Employer not found: .* \(request [0-9a-f]{24}\)\n$/)
  })

  test('tries again under one key, and gives a redirect no secrets', async () => {
    const keys: unknown[] = []
    const server = createServer((request, response) => {
      keys.push(request.headers['idempotency-key'])
      if (request.method === 'GET') response.writeHead(302, { Location: '/elsewhere' }).end()
      else if (keys.length === 1) request.socket.destroy()
      else response.writeHead(202, { 'Content-Type': 'application/json' }).end('{"status":"completed"}')
    })
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    onTestFinished(() => void server.close())
    const { stdout, stderr } = await python(
      `
import os
from compstream import CoreClient, NoAnswerError
client = CoreClient(os.environ["COMPSTREAM_URL"], "id", "secret", retries=1)
print(client.report_payroll(body={"employer_fein": "1", "policy_number": "2", "employees": []})["status"])
try:
    client.get_file_status(file_id="x/y")
except NoAnswerError as error:
    print(error.tries, error.idempotency_key)
for key in ("", "two words", 17):
    try:
        client.report_payroll(body={"employees": []}, idempotency_key=key)
    except ValueError as error:
        print(error)
`,
      { COMPSTREAM_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
    )
    const refused = 'idempotency_key takes a string of 1 to 255 visible ASCII characters\n'.repeat(3)
    expect({ stdout, stderr }).toEqual({ stdout: `completed\n2 None\n${refused}`, stderr: '' })
    expect(keys).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/), keys[0], undefined, undefined])
  })

  test('takes a webhook that is signed with one of the secrets, and none that was changed or is old', async () => {
    const { stdout, stderr } = await python(`
import base64, hashlib, hmac
from compstream import WebhookVerificationError, verify_webhook
secret, body, at = "whsec_" + base64.b64encode(b"k" * 32).decode(), b'{"a":1}', 1700000000000
sign = lambda key, before: hmac.new(key, before.encode() + body, hashlib.sha256)
headers = {
    "X-Webhook-Id": "e1", "X-Webhook-Event": "later.type", "X-Webhook-Timestamp": str(at),
    "X-Webhook-Signature": sign(secret.encode(), f"{at}.").hexdigest(),
    "webhook-id": "e1", "webhook-timestamp": str(at // 1000),
    "webhook-signature": "v1," + base64.b64encode(sign(b"k" * 32, f"e1.{at // 1000}.").digest()).decode(),
}
other = "whsec_" + base64.b64encode(b"o" * 32).decode()
print(verify_webhook(body, headers, [other, secret], now=lambda: at / 1000).id)
def reason(body=body, headers=headers, secret=secret, now=at / 1000):
    try: verify_webhook(body, headers, secret, now=lambda: now)
    except WebhookVerificationError as error: print(error.reason)
reason(body=b"{}")
reason(secret=other)
reason(now=at / 1000 + 301)
reason(headers={})
reason(headers={**headers, "webhook-id": "e2"})
reason(headers={**headers, "X-Webhook-Event": "payment.completed"})
`)
    const reasons = ['wrong_signature', 'wrong_signature', 'wrong_time', 'missing_header', 'wrong_signature']
    expect({ stdout, stderr }).toEqual({
      stdout: `${['e1', ...reasons, 'wrong_type'].join('\n')}\n`,
      stderr: '',
    })
  })
})
