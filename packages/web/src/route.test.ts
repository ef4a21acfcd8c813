import { expect, test } from 'vitest'
import { routeOf, sessionLink } from './route.ts'

test('the fragment names the place in the app', () => {
  expect(routeOf('')).toEqual({ type: 'list' })
  expect(routeOf('#/')).toEqual({ type: 'list' })
  expect(routeOf(sessionLink('01ABC-x_y'))).toEqual({ type: 'session', id: '01ABC-x_y' })
  expect(routeOf('#/sessions/../x')).toEqual({ type: 'list' })
  expect(routeOf('#pair=ABCD-EFGH&fingerprint=aa')).toEqual({ type: 'pair', code: 'ABCD-EFGH' })
  expect(routeOf('#pair=')).toEqual({ type: 'list' })
})
