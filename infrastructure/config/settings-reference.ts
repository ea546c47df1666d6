import { SETTING_NAMES, SETTINGS } from './settings.ts'

/** What people read of a setting. */
export interface SettingReference {
  readonly name: string
  /** Text that stands for the setting when it is not set; null: nothing does. */
  readonly fallback: string | null
  /** What a value looks like, as errors say it; null: any text. */
  readonly form: string | null
  /** Markdown; links are relative to `docs/reference`. */
  readonly meaning: string
  /** Whether `<NAME>_FILE` may name a file with the value. */
  readonly mayBeFile: boolean
}

/** A value that no setting takes, but those that take any text. */
const NO_VALUE = '\u0000'

/** All settings, from what declares them. */
export function settingsReference(): readonly SettingReference[] {
  const defaults = SETTINGS.parse({})
  return SETTING_NAMES.map((name) => {
    const schema = SETTINGS.shape[name]
    const { description = '', fallback = shown(defaults[name]), isSecret = false } = schema.meta() ?? {}
    const refused = schema.safeParse(NO_VALUE)
    const form = refused.error?.issues[0]?.message.replace(/^.*expected /s, '') ?? null
    return { name, fallback, form, meaning: description, mayBeFile: isSecret }
  })
}

function shown(value: unknown): string | null {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return null
  return `\`${Array.isArray(value) ? value.join(',') : value}\``
}
