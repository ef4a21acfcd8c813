import { isAbsolute, join } from 'node:path'

export type Environment = Readonly<Record<string, string | undefined>>

/** Where the user's own settings, credentials and grants lie. A relative path in a variable would mean another folder each time. */
export function configFolder({ home, env }: { home: string; env: Environment }): string {
  const { TAPETREE_HOME: own, XDG_CONFIG_HOME: shared } = env
  if (own !== undefined && isAbsolute(own)) return own
  return join(shared !== undefined && isAbsolute(shared) ? shared : join(home, '.config'), 'tapetree')
}
