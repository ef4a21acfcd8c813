import { expect, test } from 'vitest'
import { programUrl } from './program-url.ts'

test('a program lies beside the module that starts it and has the same extension', () => {
  expect(programUrl('program-url', import.meta.url).href).toBe(new URL('program-url.ts', import.meta.url).href)
})

test('a program that a bundler has left out is an error that names the missing entry', () => {
  const bundle = new URL('dist/app.js', import.meta.url).href
  expect(() => programUrl('supervisor', bundle)).toThrow(
    'supervisor.js is missing beside app.js. If you bundle @tapetree/agent, add @tapetree/agent/programs/supervisor as an entry named supervisor.',
  )
})
