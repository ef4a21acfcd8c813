import type { DeclaredRoute } from '../app.ts'

/** The table of routes in the reference. */
export function routes(declared: readonly DeclaredRoute[]): string {
  const rows = declared.map(({ method, path, access, config }) => {
    const statuses = Object.keys(config.responses).filter((status) => status !== 'default')
    return `| ${method.toUpperCase()} | \`${path}\` | ${access} | ${config.summary ?? ''} | ${statuses.join(', ')} |`
  })
  return ['| method | path | role | what it does | answers |', '|---|---|---|---|---|', ...rows].join('\n')
}
