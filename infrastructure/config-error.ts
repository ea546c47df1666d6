/** A setting that cannot work. The message is one line that names the variable; it never quotes a secret. */
export class ConfigError extends Error {
  override readonly name: string = 'ConfigError'
}
