// @module-tag each-log
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkProof } from '../../../application/audit/check-proof.ts'
import { leafHash } from '../../../application/audit/merkle.ts'
import { cli, expectRefused } from '../../support/cli.ts'
import { goVerdicts, hasGoTlog } from '../../support/go-tlog.ts'
import { askOperator, type SeededTenant, seedTenant } from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { newWitness } from '../../support/witness.ts'

describe('the log of a service', () => {
  const folder = temporaryDirectory()
  let service: RunningService
  let seeded: SeededTenant
  const witness = newWitness('witness.example/w')
  beforeAll(async () => {
    service = await startService({ env: { AUDIT_CHECKPOINTS_DIR: folder, AUDIT_WITNESS_KEYS: witness.key } })
    seeded = await seedTenant(service)
  })
  afterAll(() => service?.stop())

  const ops = (method: string, path: string, body?: unknown) => askOperator(service, method, path, body)
  const eventId = async (): Promise<string> =>
    (await ops('GET', `/streams/employer-${seeded.employerId}`)).body.data[0].event_id

  /** Checks a proof by the command line, without the service. */
  async function check(proof: unknown, ...options: string[]) {
    const file = join(folder, 'proof.json')
    await writeFile(file, JSON.stringify(proof))
    return cli(['--json', 'audit', 'check', file, ...options])
  }

  test('proves an event to who has the key that was kept outside it, and no other event', async () => {
    const proof = (await ops('GET', `/audit/proofs/${await eventId()}`)).body.data
    const kept = ['--key-file', join(folder, 'verifier-key')]
    const checked = await check(proof, ...kept)
    expect([checked.stderr, checked.json()]).toEqual([
      '',
      expect.objectContaining({
        proven: true,
        stream: `employer-${seeded.employerId}`,
        revision: 0,
        type: 'EmployerRegistered',
        leaf_index: proof.leaf_index,
      }),
    ])
    const altered = Buffer.from(proof.leaf, 'base64').toString().replace('EmployerRegistered', 'Employer')
    const leaf = Buffer.from(altered).toString('base64')
    expectRefused(await check({ ...proof, leaf }, ...kept), /proves nothing/)
    const another = 'compstream/x+29c8d1b2+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
    expect((await check(proof, '--key', another)).code).toBe(2)
    expect((await check(proof)).stderr).toMatch(/--key or --key-file/)
    expectRefused(await check({ kind: 'inclusion' }, ...kept), /holds no proof/)
  })

  test('is signed when an operator asks, and each checkpoint is the beginning of the next', async () => {
    const first = (await ops('POST', '/audit/checkpoints')).body.data
    await ops('GET', `/streams/employer-${seeded.employerId}?reveal=true`)
    const { status, body } = await ops('POST', '/audit/checkpoints')
    expect([status, body.data.size > first.size]).toEqual([201, true])
    expect(await readFile(join(folder, 'latest.checkpoint'), 'utf8')).toBe(body.data.note)
    expect((await ops('GET', '/audit/checkpoints?limit=2')).body.data).toEqual([body.data, first])

    const { data } = (await ops('GET', `/audit/consistency?from=${first.size}&to=${body.data.size}`)).body
    const checked = await check(data, '--key', first.key)
    expect(checked.json()).toMatchObject({ proven: true, from: first.size, to: body.data.size })
    expectRefused(await check({ ...data, from: data.to }, '--key', first.key), /proves nothing/)
  })

  test('and stories from it are exported with proofs, masked, and checked without the service', async () => {
    const env = { COMPSTREAM_OPS_URL: service.opsUrl, OPERATOR_TOKEN: service.operatorToken }
    const exported = async (name: string, ...command: string[]) => {
      const place = join(folder, name)
      const made = await cli(['--json', ...command, '--export', place], { env })
      expect([made.code, made.stderr]).toEqual([0, ''])
      const checked = await cli([
        '--json',
        'audit',
        'check',
        place,
        '--key-file',
        join(folder, 'verifier-key'),
      ])
      const { manifest_sha256 } = made.json()
      expect(checked.json()).toMatchObject({ proven: true, manifest_sha256, made_by: { role: 'admin' } })
      const lines = (await readFile(join(place, 'events.jsonl'), 'utf8')).trim().split('\n')
      return { place, checked: checked.json(), events: lines.map((line) => JSON.parse(line)) }
    }
    const story = await exported('story', 'stories', 'employer', seeded.employerId)
    const [{ leaf_hash, proof, ...registered }] = story.events
    const proven = (await ops('GET', `/audit/proofs/${registered.event_id}`)).body.data
    expect(leafHash(Buffer.from(proven.leaf, 'base64')).toString('base64')).toBe(leaf_hash)
    expect(proof.leaf_index).toBe(proven.leaf_index)
    expect(registered).toMatchObject({
      data: { fein: '•••' },
      sentence: expect.stringMatching(/^The employer/),
    })
    expect(await readFile(join(story.place, 'events.csv'), 'utf8')).toMatch(/"The employer was registered/)

    const whole = await exported('whole', 'events', 'list')
    expect(whole.checked).toMatchObject({ is_whole_log: true, command: 'events list', filters: {} })
    const stream = ['streams', 'show', `employer-${seeded.employerId}`, '--type', 'EmployerRegistered']
    const opened = await exported('opened', ...stream, '--reveal', '--reason', 'A check')
    expect(opened.events[0].data.fein).toBe(seeded.fein)
    expect(opened.checked).toMatchObject({
      events: 1,
      is_whole_log: false,
      of: { stream: `employer-${seeded.employerId}` },
      filters: { type: 'EmployerRegistered', reveal: true, reason: 'A check' },
    })
    const [acted] = (await ops('GET', '/events?type=OperatorActed&limit=1000')).body.data.slice(-1)
    expect(acted.data).toMatchObject({ action: 'reveal', details: { reason: 'A check' } })

    const again = await cli(['events', 'list', '--export', whole.place], { env })
    expectRefused(again, /is not empty/)
    const limited = await cli(['events', 'list', '--limit', '5', '--export', join(folder, 'x')], { env })
    expect([limited.code, limited.stderr]).toEqual([2, expect.stringMatching(/leave --limit out/)])
    const unknown = ['stories', 'policy', 'f'.repeat(24), '--export', join(folder, 'x')]
    expectRefused(await cli(unknown, { env }), /There is no such thing/)
    expect((await readdir(folder)).filter((name) => name.startsWith('x'))).toEqual([])
  })

  test('keeps the cosignature of a witness with its checkpoint, and shows it with all that is proven by that', async () => {
    const env = { COMPSTREAM_OPS_URL: service.opsUrl, OPERATOR_TOKEN: service.operatorToken }
    const { size, note, key, witnesses } = (await ops('POST', '/audit/checkpoints')).body.data
    expect(witnesses).toEqual([])
    const line = witness.cosign(note, Date.parse('2026-04-01T00:00:00Z') / 1_000)
    const refused = async (cosignature: string) => {
      const { status, body } = await ops('POST', `/audit/checkpoints/${size}/cosignatures`, { cosignature })
      return [status, body.code, body.field]
    }
    const stranger = newWitness('witness.example/w')
    expect(await refused(stranger.cosign(note, 1))).toEqual([400, 'unknown_witness', 'cosignature'])
    const another = note.replace(`${size}`, `${size + 1}`)
    expect(await refused(witness.cosign(another, 1))).toEqual([400, 'wrong_cosignature', 'cosignature'])
    expect(await refused(witness.cosign(note, 0))).toEqual([400, 'wrong_cosignature', 'cosignature'])
    expect(await refused('not one')).toEqual([400, 'field_invalid', 'cosignature'])
    const unknown = await ops('POST', '/audit/checkpoints/1000000/cosignatures', { cosignature: line })
    expect([unknown.status, unknown.body.field]).toEqual([404, 'size'])

    const key_id = witness.key.split('+')[1]
    const seen = { witness: 'witness.example/w', key_id, signed_at: '2026-04-01T00:00:00.000Z', size }
    // what a witness answers that signs by ML-DSA as well
    const long = `— witness.example/w ${Buffer.alloc(4 + 8 + 2_420, 6).toString('base64')}`
    const answer = `${[stranger.cosign(note, 1), long, long, long, line].join('\n')}\n`
    const attached = await cli(['--json', 'audit', 'cosign', String(size), answer], { env })
    expect([attached.stderr, attached.json()]).toEqual([
      '',
      expect.objectContaining({ note: `${note}${line}\n`, witnesses: [seen] }),
    ])
    // the log goes on
    await ops('GET', `/streams/employer-${seeded.employerId}?reveal=true`)
    await ops('POST', '/audit/checkpoints')
    const [kept] = (await readdir(folder)).filter((name) => name.endsWith('-cosigned.checkpoint'))
    expect(await readFile(join(folder, kept!), 'utf8')).toBe(`${note}${line}\n`)
    expect((await ops('POST', '/audit/verify')).body.data).toMatchObject({
      verified: true,
      witnesses: [seen],
    })

    const trusted = ['--key', key, '--key', witness.key]
    const proof = (await ops('GET', `/audit/proofs/${await eventId()}?tree_size=${size}`)).body.data
    expect((await check(proof, ...trusted)).json()).toMatchObject({ proven: true, size, witnesses: [seen] })
    expect((await check(proof, '--key', key)).json()).toMatchObject({ proven: true, witnesses: [] })
    expectRefused(await check(proof, '--key', witness.key), /No key that is trusted/)
    const link = (await ops('GET', `/audit/consistency?from=${size}`)).body.data
    expect((await check(link, ...trusted)).json()).toMatchObject({ from: size, witnesses: [seen] })

    const place = join(folder, 'cosigned')
    const story = ['stories', 'employer', seeded.employerId, '--tree-size', String(size), '--export', place]
    expect((await cli(['--json', ...story], { env })).stderr).toBe('')
    const checked = await cli(['--json', 'audit', 'check', place, ...trusted])
    expect(checked.json()).toMatchObject({ proven: true, size, witnesses: [seen] })
  })

  // compiles Go's packages; unit/audit/merkle holds the proofs against the standard
  test.skipIf(!hasGoTlog)(
    "is proven to Go's own transparency log, and no longer once a byte is changed (needs golang-go, golang-golang-x-mod-dev)",
    { tags: 'long' },
    async () => {
      const env = { COMPSTREAM_OPS_URL: service.opsUrl, OPERATOR_TOKEN: service.operatorToken }
      const written = async (...command: string[]) => {
        const run = await cli(['--json', 'audit', ...command], { env })
        expect([run.code, run.stderr]).toEqual([0, ''])
        return run.json()
      }
      const { size, key, note } = await written('checkpoint')
      await written('cosign', String(size), witness.cosign(note, 1_775_001_600))
      const inclusion = await written('prove', await eventId())
      const witnessed = await written('prove', await eventId(), '--tree-size', String(size))
      const later = await written('checkpoint')
      const consistency = await written('consistency', '--from', String(size), '--to', String(later.size))
      const same = await written('consistency', '--from', String(later.size))
      const whole = [inclusion, consistency, same]
      const changed = [
        ...changedBytes(inclusion.leaf).map((leaf) => ({ ...inclusion, leaf })),
        ...[inclusion, consistency].flatMap((proof) => changedPaths(proof)),
        { ...inclusion, leaf_index: inclusion.leaf_index + 1 },
        { ...inclusion, event_id: consistency.from },
        { ...consistency, from: consistency.to },
        ...changedNotes(inclusion.checkpoint).map((checkpoint) => ({ ...inclusion, checkpoint })),
        ...changedNotes(consistency.from).map((from) => ({ ...consistency, from })),
        ...changedNotes(consistency.to).map((to) => ({ ...consistency, to })),
      ]
      const verdicts = goVerdicts([...whole, ...changed].map((proof) => ({ proof, keys: [key] })))
      expect(verdicts.slice(0, whole.length)).toEqual(whole.map(() => ''))
      const keys = [key, witness.key]
      const [cosigned, ...others] = goVerdicts([
        { proof: witnessed, keys },
        { proof: same, keys },
        ...changedBytes(witnessed.checkpoint.match(/(\S+)\n$/)[1]).map((line) => {
          const checkpoint = witnessed.checkpoint.replace(/\S+\n$/, `${line}\n`)
          return { proof: { ...witnessed, checkpoint }, keys }
        }),
      ])
      expect([cosigned, others.filter((why) => why === '')]).toEqual(['', []])
      const taken = changed.filter((proof, n) => verdicts[whole.length + n] === '' || isProven(proof, key))
      expect(taken).toEqual([])
    },
  )

  test.each([
    ['/events?tree_size=1000000000', 400],
    ['/events?tree_size=0', 400],
    ['/audit/proofs/00000000-0000-4000-8000-000000000000', 404],
    ['/audit/proofs/x', 404],
    ['/audit/consistency?from=1000000000', 404],
    ['/audit/consistency?to=1', 404],
    ['/audit/consistency?from=0', 400],
    ['/audit/consistency?to=x', 400],
    ['/audit/checkpoints?limit=0', 400],
  ])('has no proof for %s: %i', async (path, status) => {
    expect((await ops('GET', path)).status).toBe(status)
  })
})

function isProven(proof: Parameters<typeof checkProof>[0], key: string): boolean {
  try {
    return checkProof(proof, [key]) !== null
  } catch {
    return false
  }
}

/** Texts of base64, each with another byte changed. */
function changedBytes(text: string): string[] {
  return Array.from(Buffer.from(text, 'base64'), (_, at) => {
    const bytes = Buffer.from(text, 'base64')
    bytes[at]! ^= 1
    return bytes.toString('base64')
  })
}

/** A proof, each time with a byte of another hash changed, and without a hash. */
function changedPaths<P extends { readonly path: readonly string[] }>(proof: P): P[] {
  return proof.path.flatMap((hash, at) => [
    { ...proof, path: proof.path.toSpliced(at, 1) },
    ...changedBytes(hash).map((changed) => ({ ...proof, path: proof.path.with(at, changed) })),
  ])
}

/** A note, each time with another character of its text or another byte of its signature changed. */
function changedNotes(note: string): string[] {
  const [, text = '', before = '', signature = ''] = /^(.*?\n)(\n— \S+ )(\S+)\n/s.exec(note)!
  const texts = Array.from(text, (character, at) => {
    const other = String.fromCharCode(character.charCodeAt(0) ^ 1)
    return `${text.slice(0, at)}${other}${text.slice(at + 1)}${before}${signature}\n`
  })
  return [...texts, ...changedBytes(signature).map((one) => `${text}${before}${one}\n`)]
}
