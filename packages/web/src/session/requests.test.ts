import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { afterAll, expect, test, vi } from 'vitest'

// What the modules of a page read when they are loaded.
vi.stubGlobal('location', { href: 'http://127.0.0.1/' })
vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener: () => undefined }))
const { Request } = await import('./requests.tsx')
afterAll(() => void vi.unstubAllGlobals())

test('a double click on Allow once answers one request only', () => {
  const request = {
    requestId: 'second',
    runId: 'run',
    seq: 1,
    timestamp: '2026-11-16T00:00:00Z',
    tool: 'bash',
    title: 'Run in /repo: rm -r build',
    options: [{ optionId: 'allow_once', label: 'Allow once', kind: 'allow_once' as const }],
  }
  const markup = renderToStaticMarkup(
    createElement(Request, { request, others: 0, isSent: false, mayAnswer: true, onAnswer: () => undefined }),
  )
  // The second click reaches the next request when it has just appeared.
  expect(markup).toContain('<button disabled="" class="yes">Allow once</button>')
})
