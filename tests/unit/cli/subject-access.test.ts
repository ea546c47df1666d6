import { spawnSync } from 'node:child_process'
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

/**
 * Exports into a file, from a server that answers so, the last answer again and again.
 * @returns what the command left, and how often the server was asked.
 */
async function exported(out: string, ...answers: ((response: ServerResponse) => void)[]) {
  let asked = 0
  const server = createServer((request, response) => {
    const answer = answers[asked] ?? answers.at(-1)!
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

const tooMany = (response: ServerResponse) =>
  response
    .writeHead(429, { 'Content-Type': 'application/json', 'Retry-After': '0' })
    .end('{"ok":false,"error":"Too Many Requests","message":"At most 2"}')

/** Whether this user may mount file systems. */
const mayMount = spawnSync('unshare', ['-m', 'true']).status === 0

/** A disk of 64 KiB. */
async function smallDisk(): Promise<string> {
  const disk = await mkdtemp(join(tmpdir(), 'small-disk-'))
  expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk]).status).toBe(0)
  onTestFinished(async () => {
    spawnSync('umount', ['-l', disk])
    await rm(disk, { recursive: true })
  })
  return disk
}

describe('an export', () => {
  test('comes into a new file', async () => {
    const out = join(folder, 'ada.age')
    expect(await exported(out, bytes)).toMatchObject({ code: 0, asked: 1 })
    expect(await readFile(out, 'utf8')).toBe('sealed')
    expect(await readdir(folder)).toEqual(['ada.age'])
  })

  test('that came when as many are made as may be asks again, and comes', async () => {
    const out = join(folder, 'ada.age')
    expect(await exported(out, tooMany, tooMany, bytes)).toMatchObject({ code: 0, asked: 3, stderr: '' })
    expect(await readFile(out, 'utf8')).toBe('sealed')
  })

  test.skipIf(!mayMount)(
    'onto a disk that is full says so, tells no key, leaves no file, and comes once there is room (needs a user that may mount)',
    async () => {
      const disk = await smallDisk()
      const filler = join(disk, 'filler')
      await writeFile(filler, Buffer.alloc(48 * 1024))
      const out = join(disk, 'ada.age')
      const large = (response: ServerResponse) =>
        response.writeHead(200, { 'Content-Type': 'application/octet-stream' }).end(Buffer.alloc(40 * 1024))
      const full = await exported(out, large)
      expect([full.code, full.stdout, full.asked]).toEqual([1, '', 1])
      expect(JSON.parse(full.stderr)).toMatchObject({ message: `${out} cannot be written: ENOSPC` })
      expect(await readdir(disk)).toEqual(['filler'])
      await rm(filler)
      expect(await exported(out, large)).toMatchObject({ code: 0, asked: 1 })
      expect((await readFile(out)).length).toBe(40 * 1024)
    },
  )

  test.skipIf(!mayMount)(
    'into a folder that may not be written asks for nothing (needs a user that may mount)',
    async () => {
      const disk = await smallDisk()
      expect(spawnSync('mount', ['-o', 'remount,ro', disk]).status).toBe(0)
      const out = join(disk, 'ada.age')
      const refused = await exported(out, bytes)
      expect([refused.code, refused.stdout, refused.asked]).toEqual([1, '', 0])
      expect(JSON.parse(refused.stderr)).toMatchObject({ message: `${out} cannot be written: EROFS` })
      expect(await readdir(disk)).toEqual([])
    },
  )

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
