import { ALERTS, type AlertKind, alertIdOf } from '../../application/operations/alert-kinds.ts'
import { operatorAlerts as table } from '../../application/operations/operator-alerts-table.ts'
import { OperatorAlertAcknowledged } from '../../domain/operations/operator-alert.ts'
import { AlertRaised, type RaisedAlert } from '../../domain/operations/raised-alert.ts'
import { projection } from '../runtime/projection.ts'

/** What raises alerts by kind: an event of its own, or one that names the kind. */
const RAISING: readonly (readonly [kind: string, Pick<AlertKind, 'type' | 'about' | 'per'>])[] = [
  ...Object.entries(ALERTS),
  ...AlertRaised.schema.shape.kind.options.map((kind) => {
    const about = (data: RaisedAlert) => (data.kind === kind ? data.about : null)
    return [kind, { type: AlertRaised, about }] as const
  }),
]

/** Alerts for operators, and their acknowledgements. */
export const operatorAlerts = projection({
  name: 'operator-alerts',
  version: 6,
  tables: [table],
  handlers: (on) => [
    ...RAISING.map(([kind, alert]) =>
      on(alert.type, {
        reads: (event) => ({ operator_alerts: alert.per ? [[alertIdOf(kind, alert, event)]] : [] }),
        apply(event, { operator_alerts }) {
          const about = alert.about(event.data as never)
          if (about === null) return
          const { tenant_id, environment, recorded_at } = event.metadata
          const alert_id = alertIdOf(kind, alert, event)
          const before = alert.per && operator_alerts.get(alert_id)
          const times = (before?.times ?? 0) + 1
          if (before && before.acknowledged_at === null) {
            operator_alerts.change([alert_id], { about, times, count: before.count + 1 })
            return
          }
          operator_alerts.put({
            alert_id,
            kind,
            tenant_id,
            environment,
            about,
            times,
            count: 1,
            raised_at: recorded_at,
            seq: event.position,
          })
        },
      }),
    ),
    ...Object.entries<AlertKind>(ALERTS).flatMap(([kind, alert]) =>
      (alert.settledBy ?? []).map((type) =>
        on(type, {
          reads: (event) => ({ operator_alerts: [[alertIdOf(kind, alert, event)]] }),
          apply(event, { operator_alerts }) {
            const alert_id = alertIdOf(kind, alert, event)
            if (operator_alerts.get(alert_id)?.acknowledged_at !== null) return
            const { actor, recorded_at } = event.metadata
            operator_alerts.change([alert_id], {
              acknowledged_at: recorded_at,
              acknowledged_by: actor.id,
              note: null,
            })
          },
        }),
      ),
    ),
    on(OperatorAlertAcknowledged, {
      reads: ({ data }) => ({ operator_alerts: [[data.alert_id]] }),
      apply({ data: { alert_id, note, times = 1 }, metadata }, { operator_alerts }) {
        const { actor, recorded_at } = metadata
        const before = operator_alerts.get(alert_id)
        // earlier versions knew it by another id
        if (!before) return
        const later = before.times - times
        // it has happened again since it was looked at
        if (later > 0) return operator_alerts.change([alert_id], { count: later })
        operator_alerts.change([alert_id], { acknowledged_at: recorded_at, acknowledged_by: actor.id, note })
      },
    }),
  ],
})
