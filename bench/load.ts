import { spawn } from 'node:child_process'
import autocannon from 'autocannon'

/** One kind of request to send for a while. */
export interface Load {
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly connections: number
  readonly seconds: number
}

export interface LoadResult {
  readonly requestsPerSecond: number
  /** Latency in milliseconds. */
  readonly p99: number
}

/** Sends a load from a process of its own, so that measuring shares no event loop with what is measured. */
export async function sendLoad(load: Load): Promise<LoadResult> {
  const child = spawn(process.execPath, [process.argv[1]!, '--send-load', JSON.stringify(load)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  if (code !== 0) throw new Error(`The load on ${load.url} failed: ${output}`)
  return JSON.parse(output) as LoadResult
}

/** The other side of {@link sendLoad}: runs in the child process and prints the result. */
export async function runLoad(load: Load): Promise<void> {
  const { url, method, headers, body, connections, seconds } = load
  const result = await autocannon({
    url,
    method,
    headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body }),
    connections,
    duration: seconds,
  })
  if (result.errors > 0 || result.timeouts > 0 || result.non2xx > 0) {
    process.stdout.write(
      `${result.non2xx} answers were no success, ${result.errors} errors, ${result.timeouts} timeouts`,
    )
    process.exitCode = 1
    return
  }
  const measured: LoadResult = {
    requestsPerSecond: result['2xx'] / result.duration,
    p99: result.latency.p99,
  }
  process.stdout.write(JSON.stringify(measured))
}
