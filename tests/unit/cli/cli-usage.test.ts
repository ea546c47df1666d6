import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { cli } from '../../support/cli.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

const directory = temporaryDirectory()
const csv = join(directory, 'rows.csv')
beforeAll(async () => {
  await writeFile(csv, 'class_code,state,gross_wages\n8810,CA,10\n')
})

describe('a value that neither an option nor a variable gives is wrong usage, where nobody can be asked', () => {
  test.for([
    ['the operator token', ['projections', 'list'], {}, 'OPERATOR_TOKEN'],
    ['the client id', submit(), { COMPSTREAM_CLIENT_SECRET: 'secret' }, 'COMPSTREAM_CLIENT_ID'],
    ['the client secret', submit(), { COMPSTREAM_CLIENT_ID: 'id' }, 'COMPSTREAM_CLIENT_SECRET'],
    ['the address of an administrator', ['events', 'grant', 'user'], {}, 'EVENTSTORE_ADMIN_URL'],
  ] as const)('%s', async ([, args, env, named]) => {
    const line = args.map((arg) => (arg === 'FILE' ? csv : arg))
    const { code, stdout, stderr } = await cli([...line, '--json'], { env: { DATA_DIR: directory, ...env } })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(JSON.parse(stderr)).toEqual({ ok: false, error: 'Usage', message: expect.stringContaining(named) })
  })
})

function submit(): readonly string[] {
  return ['payroll', 'submit', 'FILE', '--employer-fein', '12-3456789', '--policy-number', 'WC-1']
}

test('payroll submit prints what was stored, with code 4, where nobody says how far it is', async () => {
  const server = createServer((request, response) => {
    const isReport = request.method === 'POST'
    response.writeHead(isReport ? 202 : 401, { 'Content-Type': 'application/json' })
    response.end(
      JSON.stringify(
        isReport
          ? { file_id: 'f'.repeat(24), file_name: 'rows_1.csv', status: 'processing', employee_count: 1 }
          : { error: 'Invalid client_secret', message: 'The key was rotated' },
      ),
    )
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => void server.close())
  const line = submit().map((arg) => (arg === 'FILE' ? csv : arg))
  const env = {
    COMPSTREAM_CORE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    COMPSTREAM_CLIENT_ID: 'id',
    COMPSTREAM_CLIENT_SECRET: 'secret',
  }
  const { code, stdout, stderr } = await cli(line, { env })
  expect([code, stdout]).toEqual([
    4,
    expect.stringContaining(`File ${'f'.repeat(24)} (rows_1.csv): processing`),
  ])
  expect(stderr).toMatch(/^error: File f+ was stored; .*: Invalid client_secret: The key was rotated\n$/)
  const machine = await cli([...line, '--json'], { env })
  expect([machine.code, machine.json().file_id]).toEqual([4, 'f'.repeat(24)])
})
