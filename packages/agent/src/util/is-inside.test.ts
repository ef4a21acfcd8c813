import fc from 'fast-check'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isInside } from './is-inside.ts'

test.each([
  ['/home/me', '/home/me', true],
  ['/home/me/a', '/home/me', true],
  ['/home/me/a', '/home/me/', true],
  ['/home/me-too', '/home/me', false],
  ['/home', '/home/me', false],
  ['/home/me/..a', '/home/me', true],
  ['/home/me/../you', '/home/me', false],
  ['/bin/../home/me/a', '/home/me', true],
  ['/a', '/', true],
  ['/', '/', true],
])('%s in %s: %s', (path, folder, isIn) => {
  expect(isInside(path, folder)).toBe(isIn)
})

test('a path joined from a folder and plain names is inside, and the folder is not inside that path', () => {
  const name = fc.stringMatching(/^[a-c.]{1,3}$/).filter((each) => each !== '.' && each !== '..')
  const names = fc.array(name, { maxLength: 4 })
  fc.assert(
    fc.property(names, fc.array(name, { minLength: 1, maxLength: 4 }), (above, below) => {
      const folder = join('/', ...above)
      const path = join(folder, ...below)
      expect([isInside(path, folder), isInside(folder, path)]).toEqual([true, false])
    }),
  )
})
