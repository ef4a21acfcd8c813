import { expect, test } from 'vitest'
import { themeFor } from '../theme.ts'
import { footerLine, type FooterOptions } from './footer.ts'

const options: FooterOptions = {
  config: { model: { provider: 'p', modelId: 'model-1' }, thinkingLevel: 'high', mode: 'ask' },
  usage: { cost: 1.234 },
  contextTokens: 34_000,
  contextWindow: 100_000,
  run: { runId: 'r', leafId: null, seq: 1, timestamp: new Date(1_000_000).toISOString() },
  access: { type: 'attached', where: 'process 7' },
  presence: [
    { id: 'a', visibility: 'visible', typing: false },
    { id: 'b', visibility: 'visible', typing: true },
  ],
  width: 120,
  theme: themeFor({ theme: 'dark', color: false }),
  now: 1_075_000,
}

test('the footer shows the model, context usage, cost and other screens', () => {
  expect(footerLine(options)).toBe(
    ' model-1 · thinks high · ask · 34% of context · $1.23 · 1 min 15 s · 1 other watches, typing · at process 7',
  )
  const quiet = {
    ...options,
    config: undefined,
    usage: { cost: 0 },
    contextWindow: undefined,
    run: null,
    presence: undefined,
  }
  expect(footerLine({ ...quiet, access: { type: 'read-only', reason: 'x' } })).toBe(' no model · read-only')
})

test('the footer names the folder, the branch and the session, and counts tokens', () => {
  const place = { folder: '/code/app', branch: 'main', name: 'date parser', usage: { cost: 0.5, tokens: 12_345 } }
  const quiet = { ...options, ...place, access: { type: 'owner' }, presence: [], run: null } as const
  expect(footerLine(quiet)).toBe(
    ' app (main) · date parser · model-1 · thinks high · ask · 34% of context · 12k tokens · $0.50',
  )
  expect(footerLine({ ...quiet, width: 70 })).toBe(' app (main) · model-1 · thinks high · ask · 34% of context · $0.50')
})

test('the footer shows language servers; those that find nothing go first on a narrow terminal', () => {
  const found = { status: 'running', errors: 0, warnings: 0 } as const
  const languageServers: FooterOptions['languageServers'] = [
    { ...found, name: 'typescript', errors: 2 },
    { ...found, name: 'gopls' },
    { ...found, name: 'clangd', status: 'starting' },
    { ...found, name: 'pyright', status: 'failed', problem: 'Gone.', retryAt: new Date(1_079_000).toISOString() },
  ]
  const quiet = {
    ...options,
    languageServers,
    access: { type: 'owner' },
    presence: [],
    run: null,
    usage: undefined,
  } as const
  expect(footerLine({ ...quiet, width: 200 })).toBe(
    ' model-1 · thinks high · ask · 34% of context · typescript 2 errors · gopls no errors · clangd starting · pyright failed, can restart in 4 s',
  )
  expect(footerLine({ ...quiet, width: 110 })).toBe(
    ' model-1 · thinks high · ask · 34% of context · typescript 2 errors · pyright failed, can restart in 4 s',
  )
  expect(footerLine({ ...quiet, width: 60 })).toBe(' model-1 · ask · 34% of context · typescript 2 errors')
})

test('the footer shows that there is no sandbox', () => {
  const { config } = options
  const shown = (mode: string, modeReason?: string): string =>
    footerLine({ ...options, config: config && { ...config, mode, ...(modeReason && { modeReason }) }, width: 60 })
  expect(shown('sandboxed')).toContain(' · sandboxed · ')
  expect(shown('ask', 'bubblewrap is not installed.')).toContain(' · ask: no sandbox · ')
})

test('on a narrow terminal the least important parts are left out first', () => {
  expect([90, 60, 40, 30, 9, 5].map((width) => footerLine({ ...options, width }))).toEqual([
    ' model-1 · thinks high · ask · 34% of context · $1.23 · 1 min 15 s',
    ' model-1 · ask · 34% of context · $1.23 · 1 min 15 s',
    ' model-1 · ask · 34% of context',
    ' model-1 · 34% of context',
    ' model-1',
    ' mod…',
  ])
})
