import { randomFrom } from '@tapetree/session/testing'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, test } from 'vitest'
import { families } from './families.ts'
import { createRedactor } from './redactor.ts'
import { plant, secretShapes } from './testing/planted-secrets.ts'

const redactor = createRedactor()

test('there are at least forty families, and a secret of each is planted', () => {
  const names = new Set(families.map(({ name }) => name))
  expect(names.size).toBeGreaterThanOrEqual(40)
  expect(new Set(secretShapes.map(({ family }) => family))).toEqual(names)
})

test('at least 99 of 100 secrets of every family are found, in any context', () => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  const random = randomFrom(seed)
  const missed = secretShapes.flatMap((shape) => {
    const planted = Array.from({ length: 40 }, () => plant(shape, random))
    return planted.filter(({ text, secret }) => redactor.text(text).includes(secret))
  })
  const texts = missed.map(({ family, text }) => `${family}: ${text}`)
  expect(missed.length / (secretShapes.length * 40), `seed ${seed}: ${texts.join('\n')}`).toBeLessThan(0.01)
})

test('at most one line in a thousand of ordinary source code is changed', () => {
  const root = join(import.meta.dirname, '../../..')
  let lines = 0
  const changed: string[] = []
  for (const text of readCode(root, 5_000_000)) {
    const before = text.split('\n')
    const after = redactor.text(text).split('\n')
    lines += before.length
    changed.push(...before.filter((line, index) => line !== after[index]))
  }
  expect(lines).toBeGreaterThan(50_000)
  expect(changed.length / lines, changed.slice(0, 20).join('\n')).toBeLessThan(0.001)
})

describe('passwords that people choose are found', () => {
  it.each([
    ['DB_PASSWORD=swordfish', 'DB_PASSWORD=[redacted: password]'],
    ['password: "Correct!Horse"', 'password: "[redacted: password]"'],
    ["pass = 'summer2024'", "pass = '[redacted: password]'"],
    ['MYSQL_ROOT_PASSWORD: Tr0ub4dor&3', 'MYSQL_ROOT_PASSWORD: [redacted: password]'],
    ['?user=a&password=abc123def&x=1', '?user=a&password=[redacted: password]&x=1'],
  ])('%s', (text, redacted) => {
    expect(redactor.text(text)).toBe(redacted)
  })
})

describe('text that only looks like a secret stays', () => {
  it.each([
    'const token = previousToken2;',
    'password: string',
    'password: "Please enter your password"',
    'DB_PASSWORD=${DB_PASSWORD}',
    'api_key = process.env.API_KEY',
    'api_key: "YOUR_API_KEY_GOES_HERE_12345"',
    'token: await this.#tokens.next(3)',
    'https://example.com:8080/@scope/package',
    'git@github.com:owner/name.git',
    'integrity sha512-Y28PR25bHXUg88kCV7nivXrP2Nj2RueZ3/l/jdx6J9f8J4nsEGcgX0Qe6lt7Pa',
    'the task-management-and-risk-assessment-of-everything-together',
    'Basic authentication and Bearer authentication',
    'commit 7e1adb9f8f7a4d5c6b7a8990a1b2c3d4e5f60718',
    'passed: 1024, failed: 3',
  ])('%s', (text) => {
    expect(redactor.text(text)).toBe(text)
  })
})

function* readCode(root: string, limit: number): Generator<string> {
  let size = 0
  for (const file of globSync(['packages/*/src/**/*.ts', 'node_modules/{zod,yaml,vitest,undici}/**/*.{js,ts,md}'], {
    cwd: root,
  })) {
    const text = readFileSync(join(root, file), 'utf8')
    yield text
    size += text.length
    if (size > limit) return
  }
}
