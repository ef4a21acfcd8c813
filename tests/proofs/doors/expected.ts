import { changesSomething, lesserRole, type Visit, type Way } from './visit.ts'

/** The expected outcome of a visit. `own` is admitted, but reaches nothing of the watched tenant. */
export type Expected = { type: 'refused'; statuses: readonly number[] } | { type: 'own' } | { type: 'open' }

/** Written down once more, apart from the code that does it. */
export function expected(way: Way, visit: Visit): Expected {
  if (visit.host !== 'good') return refused(421)
  const isForeign = visit.origin !== 'absent' && visit.origin !== 'own'
  const isWrongType = way.mediaTypes.length > 0 && visit.contentType !== 'declared'
  if (way.access === 'anyone') return isForeign ? refused(403) : isWrongType ? refused(415) : { type: 'open' }
  switch (visit.token) {
    case 'none':
      return refused(401)
    case 'nonsense':
    case 'wrong secret':
    case 'expired':
    case 'revoked':
    case 'revoked cookie':
      return refused(401, 429)
    default:
  }
  if (isForeign) return refused(403)
  if (visit.token === 'good cookie' && visit.origin === 'absent' && changesSomething(way)) return refused(403)
  if (visit.token === 'lesser role' && lesserRole(way.access) !== undefined) return refused(403)
  if (visit.token === 'metrics role' && way.access !== 'any-role' && way.access !== 'metrics') return refused(403)
  if (visit.token === 'other folder' && way.access === 'metrics') return refused(403)
  if (visit.token === 'tenant not hosted') return refused(403)
  if (isWrongType) return refused(415)
  return visit.token === 'other tenant' || visit.token === 'other folder' ? { type: 'own' } : { type: 'open' }
}

function refused(...statuses: number[]): Expected {
  return { type: 'refused', statuses }
}
