// @module-tag long: the load of the benchmarks, which .ci/all alone builds; the service does not have it
import type { RequestListener, Server } from 'node:http'
import { json } from 'node:stream/consumers'
import { afterEach, describe, expect, it } from 'vitest'
import { type Ask, send } from '../../../bench/load.ts'
import { plainServer } from '../../support/http-hosts.ts'

let server: Server | undefined
afterEach(() => {
  server?.closeAllConnections()
  server?.close()
})

async function serve(listener: RequestListener): Promise<string> {
  const { url, ...opened } = await plainServer(listener)
  server = opened.server
  return url
}

const get = (url: string): Ask => ({
  kind: 'get',
  urls: [`${url}/a`, `${url}/b?page=2`],
  headers: { 'x-who': 'me' },
})
const requests = (count: number) => ({ connections: 2, warmUp: 0, length: { requests: count } })

interface Report {
  employees: { employee_id: string }[]
}

describe('a load', () => {
  it('asks for so much in turn', async () => {
    const asked: string[] = []
    const url = await serve((request, response) => {
      asked.push(`${request.headers['x-who']} ${request.url}`)
      response.end()
    })

    const { served, refused } = await send({ asks: [get(url)], ...requests(5) })

    expect(asked.toSorted()).toEqual(['me /a', 'me /a', 'me /a', 'me /b?page=2', 'me /b?page=2'])
    expect(served).toBeGreaterThan(0)
    expect(refused).toBe(0)
  })

  it('reports other people each time, with a key of its own each where it has keys', async () => {
    const reports: Report[] = []
    const keys = new Set<string | string[] | undefined>()
    const url = await serve(async (request, response) => {
      reports.push((await json(request)) as Report)
      keys.add(request.headers['idempotency-key'])
      response.end()
    })
    const who = { fein: '12-3456789', policyNumber: 'WC-1' }
    const report = { kind: 'report', url, headers: {}, who, employees: 2, people: 6, keyed: true } as const

    await send({ asks: [report], ...requests(4) })

    const ids = reports.flatMap(({ employees }) => employees.map(({ employee_id }) => employee_id))
    expect(ids.toSorted()).toEqual(['E0', 'E0', 'E1', 'E1', 'E2', 'E3', 'E4', 'E5'])
    expect(keys.size).toBe(4)
    expect(keys).not.toContain(undefined)
  })

  it('counts what was asked while it counted, however late the answer', async () => {
    let asked = 0
    const url = await serve((_request, response) => {
      asked += 1
      // the first one only opens the connection
      if (asked !== 2) return void response.end()
      setTimeout(() => response.end(), 1_500)
    })

    const { p99 } = await send({ asks: [get(url)], connections: 1, warmUp: 0, length: { seconds: 1 } })

    expect(p99).toBeGreaterThan(1_400)
  })

  it('counts refusals apart, and waits as long as it was told', async () => {
    let asked = 0
    const url = await serve((_request, response) => {
      asked += 1
      response.writeHead(503, { 'retry-after': '1', 'content-length': '0' }).end()
    })
    const load = { asks: [get(url)], ...requests(3) }
    const started = performance.now()

    const { served, refused, p99 } = await send({ ...load, mayBeRefused: true })

    expect({ asked, served, p99 }).toEqual({ asked: 3, served: 0, p99: 0 })
    expect(refused).toBeGreaterThan(0)
    expect(performance.now() - started).toBeGreaterThan(990)
    await expect(send(load)).rejects.toThrow('An answer was 503')
  })
  it('counts connections that are cut, and how long was waited for in vain', async () => {
    const url = await serve((request) => request.socket.destroy())
    const load = { asks: [get(url)], ...requests(2) }

    const { served, lost, p99 } = await send({ ...load, mayBeRefused: true })

    expect(served).toBe(0)
    expect(lost).toBeGreaterThan(0)
    expect(p99).toBeGreaterThan(0)
    await expect(send(load)).rejects.toThrow('closed before the answer')
  })
})
