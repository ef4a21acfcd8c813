import { resolve } from 'node:path'
import { defineConfig } from 'vitest/config'

// The tests that run against every mutant. Stryker copies the repository and links node_modules back to the original, where
// `@tapetree/session` is not mutated: the aliases keep the tests inside the copy.
const root = resolve(import.meta.dirname, '../..')
const source = resolve(root, 'packages/session/src')
const conditions = ['@tapetree/source', 'module', 'node', 'development|production']

export default defineConfig({
  root,
  resolve: {
    conditions,
    alias: [
      { find: /^@tapetree\/session$/, replacement: `${source}/index.ts` },
      { find: /^@tapetree\/session\/(.*)$/, replacement: `${source}/$1/index.ts` },
    ],
  },
  ssr: { resolve: { conditions } },
  test: {
    include: [
      'packages/session/src/stores/file/{blob-files,durable-folders,file-*,full-disk,log-*,node-file-port}.test.ts',
      'packages/session/src/stores/file/{recover,search-text,second-writer,storage-error}.test.ts',
      'packages/session/src/view/cut-points.test.ts',
    ],
    execArgv: ['-C', '@tapetree/source'],
    // Stryker runs tests in worker threads, which may change neither the umask nor the user.
    testTimeout: 30_000,
    // The same contract runs on the modelled disk; doing it on a real one as well for every mutant takes hours.
    testNamePattern:
      /^(?!file store (?!on a modelled)|sessions on a real disk)(?!.*(whatever the umask|only its owner can read|cannot be written)).*$/,
  },
})
