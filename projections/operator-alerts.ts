import { ALERTS, type AlertKind, alertIdOf } from '../application/operations/operator-alerts.ts'
import { operatorAlerts as table } from '../application/read-models/operator-alerts.ts'
import { OperatorAlertAcknowledged } from '../domain/operations/operator-alert.ts'
import { projection } from './runtime/projection.ts'

/** What calls for a person, and who has taken note of it. */
export const operatorAlerts = projection({
  name: 'operator-alerts',
  version: 1,
  tables: [table],
  handlers: (on) => [
    ...Object.entries<AlertKind>(ALERTS).map(([kind, { type, about }]) =>
      on(type, {
        apply(event, { operator_alerts }) {
          const named = about(event.data as never)
          if (named === null) return
          const { tenant_id, environment, recorded_at } = event.metadata
          operator_alerts.put({
            ...{ alert_id: alertIdOf(event), kind, tenant_id, environment, about: named },
            ...{ raised_at: recorded_at, seq: event.position },
          })
        },
      }),
    ),
    on(OperatorAlertAcknowledged, {
      reads: ({ data }) => ({ operator_alerts: [[data.alert_id]] }),
      apply({ data: { alert_id, note }, metadata }, { operator_alerts }) {
        const { actor, recorded_at } = metadata
        operator_alerts.change([alert_id], { acknowledged_at: recorded_at, acknowledged_by: actor.id, note })
      },
    }),
  ],
})
