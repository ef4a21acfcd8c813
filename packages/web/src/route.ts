import { useMemo, useSyncExternalStore } from 'react'

export type Place = 'active' | 'archive' | 'trash'

export const settingsSections = ['general', 'devices', 'notifications', 'usage'] as const
export type SettingsSection = (typeof settingsSections)[number]

/** The place in the app is in the fragment, so that the app works below any path and the server never sees it. */
export type Route =
  | { type: 'list'; place: Place }
  | { type: 'search'; query: string }
  | { type: 'new' }
  | { type: 'session'; id: string; entryId?: string }
  | { type: 'tree'; id: string }
  | { type: 'compare'; id: string; left: string; right: string }
  | { type: 'player'; id: string }
  | { type: 'context'; id: string; entryId?: string }
  | { type: 'settings'; section: SettingsSection }
  | { type: 'pair'; code: string }

export function routeOf(fragment: string): Route {
  const code = new URLSearchParams(fragment.replace(/^#/, '')).get('pair')
  if (code !== null && code !== '') return { type: 'pair', code }
  const [path = '', query = ''] = fragment.replace(/^#\//, '').split('?', 2)
  const [first, ...rest] = path.split('/')
  if (first === 'sessions') return sessionRoute(rest) ?? { type: 'list', place: 'active' }
  if (first === 'archive' || first === 'trash') return { type: 'list', place: first }
  if (first === 'search') return { type: 'search', query: new URLSearchParams(query).get('q') ?? '' }
  if (first === 'new') return { type: 'new' }
  if (first === 'settings')
    return { type: 'settings', section: settingsSections.find((each) => each === rest[0]) ?? 'general' }
  return { type: 'list', place: 'active' }
}

function sessionRoute([id = '', screen, ...rest]: readonly string[]): Route | undefined {
  const [entryId, other] = rest
  if (![id, ...rest].every((each) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(each))) return undefined
  switch (screen) {
    case undefined:
      return { type: 'session', id }
    case 'entries':
      return { type: 'session', id, ...(entryId !== undefined && { entryId }) }
    case 'tree':
      return { type: 'tree', id }
    case 'compare':
      return entryId === undefined || other === undefined
        ? undefined
        : { type: 'compare', id, left: entryId, right: other }
    case 'player':
      return { type: 'player', id }
    case 'context':
      return { type: 'context', id, ...(entryId !== undefined && { entryId }) }
    default:
      return undefined
  }
}

export function sessionLink(id: string): string {
  return `#/sessions/${id}`
}

export function entryLink(id: string, entryId: string): string {
  return `#/sessions/${id}/entries/${entryId}`
}

export function screenLink(id: string, screen: 'tree' | 'player' | 'context', entryId?: string): string {
  return `#/sessions/${id}/${screen}${entryId === undefined ? '' : `/${entryId}`}`
}

export function compareLink(id: string, { left, right }: { left: string; right: string }): string {
  return `#/sessions/${id}/compare/${left}/${right}`
}

export function settingsLink(section: SettingsSection): string {
  return `#/settings/${section}`
}

export function placeLink(place: Place): string {
  return place === 'active' ? '#/' : `#/${place}`
}

export function searchLink(query: string): string {
  return `#/search?q=${encodeURIComponent(query)}`
}

export function useRoute(): Route {
  const fragment = useSyncExternalStore(onFragment, () => location.hash)
  return useMemo(() => routeOf(fragment), [fragment])
}

/** Removes the pairing code from the address and the history. */
export function leavePairing(): void {
  replaceRoute(location.pathname + location.search)
}

/** Without a step that the back button would take. */
export function replaceRoute(url: string): void {
  history.replaceState(null, '', url)
  dispatchEvent(new HashChangeEvent('hashchange'))
}

function onFragment(listener: () => void): () => void {
  addEventListener('hashchange', listener)
  return () => removeEventListener('hashchange', listener)
}
