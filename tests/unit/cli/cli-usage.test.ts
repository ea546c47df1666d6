import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cli } from '../../support/cli.ts'

let directory: string
let csv: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'compstream-cli-'))
  csv = join(directory, 'rows.csv')
  await writeFile(csv, 'class_code,state,gross_wages\n8810,CA,10\n')
})
afterAll(() => rm(directory, { recursive: true, force: true }))

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
