// A worker thread that makes a body, sends it some times at once and tells how it was answered, so that who measures
// others' waits meanwhile is not held up by the sending. Its data: { url, headers, body, times }; `body` is code, and
// without one it asks.
import { request } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'

const { url, headers, times } = workerData
const isAsking = workerData.body === undefined
const body = isAsking ? Buffer.alloc(0) : Buffer.from(new Function(`return ${workerData.body}`)())

function send() {
  return new Promise((resolve) => {
    const sent = request(url, {
      method: isAsking ? 'GET' : 'POST',
      headers: isAsking ? headers : { ...headers, 'Content-Length': body.length },
    })
    sent.on('response', (response) => {
      response.resume()
      response.on('end', () => resolve(response.statusCode))
      response.on('error', () => resolve(0))
    })
    sent.on('error', () => resolve(0))
    sent.end(body)
  })
}

parentPort.postMessage('ready')
await new Promise((resolve) => parentPort.once('message', resolve))
parentPort.postMessage(await Promise.all(Array.from({ length: times }, send)))
