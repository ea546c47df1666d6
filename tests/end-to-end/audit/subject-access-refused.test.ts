// @module-tag postgres-log
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { newAgeKeys } from '../../../infrastructure/crypto/age.ts'
import { cli } from '../../support/cli.ts'
import { operate, seedTenant } from '../../support/seed.ts'
import { sharedService } from '../../support/service.ts'

/** Subject accesses that have to wait: as many are made at once as may be. */

/** What appends wait for. */
const APPEND_LOCK = '7305420017320845001'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'subject-access-refused-'))
  return () => rm(folder, { recursive: true, force: true })
})

test('of three at once the third is 429 after a while and records nothing, and the next is answered once they are over', async () => {
  const service = await sharedService()
  const { employerId } = await seedTenant(service)
  const { data_subject } = await operate(service, 'GET', `/employers/${employerId}`)
  await operate(service, 'POST', '/drain')
  const reveals = async () => {
    const acted = await operate(
      service,
      'GET',
      `/events?type=OperatorActed&subject=${data_subject}&limit=1000`,
    )
    return acted.filter(({ data }: { data: { action: string } }) => data.action === 'reveal').length
  }
  const ask = async () => {
    const answer = await fetch(`${service.opsUrl}/ops/v1/subject-access`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${service.operatorToken}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({
        subject: data_subject,
        reason: 'Asked',
        recipient: newAgeKeys().recipient,
      }),
    })
    const body = Buffer.from(await answer.arrayBuffer())
    return { status: answer.status, retryAfter: answer.headers.get('retry-after'), body }
  }

  // an answer records that it is made before it begins: two stay at work for as long as nobody can append
  const holder = new pg.Client(service.databaseUrl)
  await holder.connect()
  onTestFinished(() => holder.end().catch(() => undefined))
  await holder.query(`SELECT pg_advisory_lock(${APPEND_LOCK})`)
  const asked = [ask(), ask(), ask()]
  const refused = await Promise.race(asked)
  expect([refused.status, refused.retryAfter]).toEqual([429, '5'])
  expect(JSON.parse(refused.body.toString())).toMatchObject({
    code: 'rate_limited',
    message: 'At most 2 subject accesses are answered at once; try again in 5 s',
  })
  await holder.query(`SELECT pg_advisory_unlock(${APPEND_LOCK})`)
  const all = await Promise.all(asked)
  expect(all.map(({ status }) => status).sort()).toEqual([200, 200, 429])
  expect(await reveals()).toBe(2)

  const run = await cli(
    ['subject-access', 'export', data_subject, '--reason', 'Asked', '--out', join(folder, 'next.age')],
    { env: { COMPSTREAM_OPS_URL: service.opsUrl, OPERATOR_TOKEN: service.operatorToken } },
  )
  expect([run.code, run.stderr]).toEqual([0, ''])
  expect(await reveals()).toBe(3)
})

test('the command that waits for its turn is stopped at once, and leaves no file', async () => {
  const SECONDS = 110
  const closed: Promise<unknown>[] = []
  const server = createServer((request, response: ServerResponse) => {
    closed.push(once(request.socket as Socket, 'close'))
    request.resume().on('end', () => {
      const headers = { 'Content-Type': 'application/json', 'Retry-After': String(SECONDS) }
      response.writeHead(429, headers).end('{"ok":false,"message":"At most 2"}')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const out = join(folder, 'ada.age')
  const args = ['subject-access', 'export', `person/${'0'.repeat(24)}`, '--reason', 'Asked', '--out', out]
  const child = spawn(process.execPath, ['dist/cli.js', ...args], {
    env: { PATH: process.env.PATH, COMPSTREAM_OPS_URL: url, OPERATOR_TOKEN: 'token' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const told = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (part) => {
      told[name] += part
    })
  }
  await once(server, 'request')
  await closed[0]
  const begun = performance.now()
  child.kill('SIGINT')
  const [code] = await once(child, 'close')
  expect({ code, ...told }).toEqual({
    code: 1,
    stdout: '',
    stderr: `error: stopped; ${out} was not written\n`,
  })
  expect(performance.now() - begun).toBeLessThan((SECONDS / 2) * 1_000)
  expect([closed.length, await readdir(folder)]).toEqual([1, []])
})
