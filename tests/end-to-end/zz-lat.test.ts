import { test } from 'vitest'
import { report } from '../support/core.ts'
import { operate, seedTenant, send } from '../support/seed.ts'
import { startService } from '../support/service.ts'
test('lat', { timeout: 190000 }, async () => {
  for (let i = 0; i < 25; i++) {
    const s = await startService()
    const t = await seedTenant(s)
    await report(s, t)
    const a = performance.now()
    const seen: string[] = []
    for (;;) {
      const d = await send(`${s.opsUrl}/ops/v1/drain`, { method: 'POST', headers: { Authorization: `Bearer ${s.operatorToken}` }, body: { timeout_seconds: 0 } })
      if (d.status === 200) break
      const p = await operate(s, 'GET', '/projections')
      seen.push(Math.round(performance.now() - a) + ' ' + JSON.stringify(p.map((x: any) => [x.name, x.state, x.position, x.lag.events])) + d.body.message.slice(50))
    }
    console.error('LAT', Math.round(performance.now() - a), seen.length, seen[0], seen.at(-1))
    await s.stop()
    if (seen.length > 20) break
  }
})
