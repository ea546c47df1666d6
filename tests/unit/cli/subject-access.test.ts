import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { cli } from '../../support/cli.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'subject-access-'))
  return () => rm(folder, { recursive: true, force: true })
})

/** Exports into a file, from a server that answers so. @returns what the command left, and how often the server was asked. */
async function exported(out: string, answer: (response: ServerResponse) => void) {
  let asked = 0
  const server = createServer((request, response) => {
    asked += 1
    request.resume().on('end', () => answer(response))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const line = ['subject-access', 'export', `person/${'0'.repeat(24)}`, '--reason', 'Asked', '--out', out]
  const run = await cli([...line, '--json'], { env: { COMPSTREAM_OPS_URL: url, OPERATOR_TOKEN: 'token' } })
  return { ...run, asked }
}

const bytes = (response: ServerResponse) =>
  response.writeHead(200, { 'Content-Type': 'application/octet-stream' }).end('sealed')

describe('an export', () => {
  test('comes into a new file', async () => {
    const out = join(folder, 'ada.age')
    expect(await exported(out, bytes)).toMatchObject({ code: 0, asked: 1 })
    expect(await readFile(out, 'utf8')).toBe('sealed')
    expect(await readdir(folder)).toEqual(['ada.age'])
  })

  test('asks for nothing where its file is there, or cannot be', async () => {
    const there = join(folder, 'there.age')
    await writeFile(there, 'mine')
    const twice = await exported(there, bytes)
    expect([twice.code, twice.asked]).toEqual([1, 0])
    expect(twice.stderr).toContain('nothing is overwritten')
    expect(await readFile(there, 'utf8')).toBe('mine')
    const nowhere = await exported(join(folder, 'missing', 'ada.age'), bytes)
    expect([nowhere.code, nowhere.asked]).toEqual([1, 0])
    expect(nowhere.stderr).toContain('cannot be written: ENOENT')
    expect(await readdir(folder)).toEqual(['there.age'])
  })

  test.each<[string, (response: ServerResponse) => void]>([
    ['leads elsewhere', (response) => response.writeHead(302, { Location: '/sign-in' }).end()],
    [
      'is a page',
      (response) => response.writeHead(200, { 'Content-Type': 'text/html' }).end('<h1>Sign in</h1>'),
    ],
    [
      'breaks off',
      (response) => {
        response.writeHead(200, { 'Content-Type': 'application/octet-stream', 'Content-Length': 100 })
        response.write('sea', () => response.destroy())
      },
    ],
  ])('fails where what is answered %s, and leaves no file', async (_, answer) => {
    const run = await exported(join(folder, 'ada.age'), answer)
    expect([run.code, run.stdout, run.stderr.includes('cannot be written')]).toEqual([1, '', false])
    expect(await readdir(folder)).toEqual([])
  })
})
