// Exit code 0 while the service in this container lives: what the image's HEALTHCHECK runs.
const port = process.env.OPS_PORT?.trim() || '4005'

try {
  const { ok } = await fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(2_500) })
  process.exitCode = ok ? 0 : 1
} catch {
  process.exitCode = 1
}
