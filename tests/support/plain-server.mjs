// A worker thread with a server that does nothing but answer, beside a computation in slices of 5 milliseconds while it
// is told to work: what its callers wait for is the machine's doing.
import { createServer } from 'node:http'
import { parentPort } from 'node:worker_threads'

const server = createServer((_request, response) => response.end('{}'))
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))

let isWorking = false
parentPort.on('message', (what) => {
  isWorking = what === 'work'
  if (isWorking) setImmediate(work)
})

function work() {
  const end = performance.now() + 5
  while (performance.now() < end);
  if (isWorking) setImmediate(work)
}
