import { expect, test } from 'vitest'
import {
  compareLink,
  entryLink,
  placeLink,
  routeOf,
  screenLink,
  searchLink,
  sessionLink,
  settingsLink,
} from './route.ts'

test('the fragment names the place in the app', () => {
  const list = { type: 'list', place: 'active' }
  expect(routeOf('')).toEqual(list)
  expect(routeOf('#/')).toEqual(list)
  expect(routeOf('#/nothing/of/the/kind')).toEqual(list)
  expect(routeOf(sessionLink('01ABC-x_y'))).toEqual({ type: 'session', id: '01ABC-x_y' })
  expect(routeOf('#/sessions/../x')).toEqual(list)
  expect(routeOf('#/sessions/a/tree/%2e%2e')).toEqual(list)
  expect(routeOf('#/sessions/a/nothing')).toEqual(list)
  expect(routeOf('#pair=ABCD-EFGH&fingerprint=aa')).toEqual({ type: 'pair', code: 'ABCD-EFGH' })
  expect(routeOf('#pair=')).toEqual(list)
})

test('every link leads to its screen', () => {
  expect(routeOf(placeLink('active'))).toEqual({ type: 'list', place: 'active' })
  expect(routeOf(placeLink('trash'))).toEqual({ type: 'list', place: 'trash' })
  expect(routeOf(searchLink('a & b=c?'))).toEqual({ type: 'search', query: 'a & b=c?' })
  expect(routeOf('#/new')).toEqual({ type: 'new' })
  expect(routeOf(entryLink('s', 'e'))).toEqual({ type: 'session', id: 's', entryId: 'e' })
  expect(routeOf(screenLink('s', 'tree'))).toEqual({ type: 'tree', id: 's' })
  expect(routeOf(screenLink('s', 'player'))).toEqual({ type: 'player', id: 's' })
  expect(routeOf(screenLink('s', 'context', 'e'))).toEqual({ type: 'context', id: 's', entryId: 'e' })
  expect(routeOf(compareLink('s', { left: 'a', right: 'b' }))).toEqual({
    type: 'compare',
    id: 's',
    left: 'a',
    right: 'b',
  })
  expect(routeOf('#/sessions/s/compare/a')).toEqual({ type: 'list', place: 'active' })
  expect(routeOf(settingsLink('usage'))).toEqual({ type: 'settings', section: 'usage' })
  expect(routeOf('#/settings/other')).toEqual({ type: 'settings', section: 'general' })
})
