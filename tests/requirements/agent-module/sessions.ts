import type { Requirement } from '../requirement.ts'

/** Sessions: the store, the lifecycle and concurrent callers. */
export const sessions = [
  {
    id: 'agent-module/sessions across-exchanges',
    says: 'A session keeps its conversation over many exchanges.',
    lines: { 'Session Management': ['95545df7'] },
  },
  {
    id: 'agent-module/sessions limit',
    says: 'A session shows at most 100 messages.',
    lines: { 'Session Management': ['ea7d7b57'], 'Design Decisions': ['3fa8a3f3'] },
    settled: 'The limit is a window on the display; nothing is deleted.',
  },
  {
    id: 'agent-module/sessions trimmed',
    says: 'Messages beyond the limit are dropped from view.',
    lines: { 'Session Management': ['bd5d72a2'] },
    settled: 'The older messages are hidden and remain in the log.',
  },
  {
    id: 'agent-module/session id',
    says: 'A session has an id.',
    lines: { 'Session Management': ['3bfe6538', '1e634309'] },
  },
  {
    id: 'agent-module/session title',
    says: 'A session has a title.',
    lines: { 'Session Management': ['4fd84139'] },
    settled: '`session.name`.',
  },
  {
    id: 'agent-module/session messages',
    says: 'A session has messages.',
    lines: { 'Session Management': ['ccd4e7c8', '8c59343b'] },
  },
  {
    id: 'agent-module/session created-at',
    says: 'A session has a creation time.',
    lines: { 'Session Management': ['3bfe6538', '7d1802f1'] },
  },
  {
    id: 'agent-module/session updated-at',
    says: 'A session has a time of its last change.',
    lines: { 'Session Management': ['00513e8a'] },
    settled: 'It is the time of the last message.',
  },
  {
    id: 'agent-module/store sessions',
    says: 'The store contains many sessions.',
    lines: { 'Session Management': ['29d2f98f', '63c8fc63'] },
  },
  {
    id: 'agent-module/store current',
    says: 'There is a current session.',
    lines: { 'Session Management': ['4bab94ac', '79891681'] },
    settled: 'The store has none; an `AgentSession` has one.',
  },
  {
    id: 'agent-module/store lock',
    says: 'Concurrent store operations are safe.',
    lines: { 'Data Types': ['ab9585f9'], 'Session Management': ['ab9585f9'], 'Thread Safety': ['f7b3a876'] },
    settled: 'One event loop and a group commit order concurrent appends; there is no mutex.',
  },
  {
    id: 'agent-module/store new',
    says: 'A function creates an empty store.',
    lines: { 'Session Management': ['6c5df844'], 'SessionStore Methods': ['670d59eb'] },
    settled: '`memoryStore()`.',
  },
  {
    id: 'agent-module/store create',
    says: 'Creating a session also makes it current.',
    lines: { 'Session Management': ['c3028aec'], 'Thread Safety': ['34096603'], 'SessionStore Methods': ['9d2ce432'] },
    settled: '`store.create({ name })`; `agentSession.newSession()` also switches to it.',
  },
  {
    id: 'agent-module/store get',
    says: 'A session can be opened by id.',
    lines: { 'Session Management': ['9f2ad62e'], 'Thread Safety': ['218c3f73'], 'SessionStore Methods': ['77e4bba4'] },
    settled: '`store.open(id)` rejects an unknown id.',
  },
  {
    id: 'agent-module/store current-session',
    says: 'The current session is created if none exists.',
    lines: {
      'Session Management': ['4287ff84'],
      'Session Lifecycle': ['b8a2d4db'],
      'Thread Safety': ['29462e66'],
      'SessionStore Methods': ['f4a3d545'],
    },
    settled: '`AgentSession.open({ store })` creates one; with `sessionId` it opens that session.',
  },
  {
    id: 'agent-module/store set-current',
    says: 'A caller can switch the current session.',
    lines: {
      'Session Management': ['672b9729'],
      'Session Lifecycle': ['7f8ac632', '901f8874'],
      'SessionStore Methods': ['5b3cdfb3'],
    },
    settled: '`agentSession.switchSession(id)` rejects an unknown id.',
  },
  {
    id: 'agent-module/store list',
    says: 'The store lists all sessions.',
    lines: { 'Session Management': ['327349d0'], 'SessionStore Methods': ['6104eaeb'] },
  },
  {
    id: 'agent-module/store delete',
    says: 'A session can be deleted.',
    lines: {
      'Session Management': ['b25eab42'],
      'Session Lifecycle': ['e4a7fcba'],
      'Thread Safety': ['ebb06aec'],
      'SessionStore Methods': ['ea7b956c'],
    },
    settled: 'It moves to the trash and can be restored; an open session is refused.',
  },
  {
    id: 'agent-module/store add-message',
    says: 'A caller can add a message.',
    lines: { 'Session Management': ['9cf76bf3'], 'Thread Safety': ['9b87fce2'], 'SessionStore Methods': ['3088e2f7'] },
    settled: '`session.appendMessage(role, content)`.',
  },
  {
    id: 'agent-module/store get-messages',
    says: 'A caller can read the messages.',
    lines: { 'Session Management': ['dc26bb67'], 'Thread Safety': ['86c04b57'], 'SessionStore Methods': ['c4eec7bb'] },
    settled: '`session.getContext()`.',
  },
  {
    id: 'agent-module/store copy',
    says: 'Callers cannot change stored messages through the returned list.',
    lines: { 'Design Decisions': ['6df8bde6'] },
    settled: '`agent.history()` is a deep copy; `session.getContext()` is a new list of read-only messages.',
  },
  {
    id: 'agent-module/store clear-messages',
    says: 'A caller can clear the messages.',
    lines: { 'Session Management': ['8da389e8'], 'Thread Safety': ['228da73a'], 'SessionStore Methods': ['8289e9d6'] },
    settled: '`session.branch(null)` starts a new conversation and removes nothing.',
  },
  {
    id: 'agent-module/store update-title',
    says: 'A caller can change the title.',
    lines: { 'Session Management': ['be1d041c'], 'SessionStore Methods': ['75bcb59d'] },
    settled: '`session.appendSessionInfo(name)`.',
  },
  {
    id: 'agent-module/lifecycle starts-empty',
    says: 'A new program has no session.',
    lines: { 'Session Lifecycle': ['e353b2cd'] },
  },
  {
    id: 'agent-module/lifecycle auto-creates',
    says: 'The first use creates a session.',
    lines: { 'Session Lifecycle': ['e7813029'] },
    settled: 'It has no name until its first prompt.',
  },
  {
    id: 'agent-module/lifecycle sends',
    says: 'Sending adds messages to the session.',
    lines: { 'Session Lifecycle': ['f6d30be1'] },
  },
  {
    id: 'agent-module/lifecycle results',
    says: 'Tool results are added to the session.',
    lines: { 'Session Lifecycle': ['42995e74'] },
  },
  {
    id: 'agent-module/lifecycle sent-after-clear',
    says: 'A cleared session accepts new messages.',
    lines: { 'Session Lifecycle': ['49cd3c6c'] },
  },
  {
    id: 'agent-module/lifecycle removed',
    says: 'A deleted session is gone from the store.',
    lines: { 'Session Lifecycle': ['a409a539'] },
  },
  {
    id: 'agent-module/sessions isolation',
    says: 'Each session has its own history.',
    lines: { 'Design Decisions': ['eb8dd762'] },
  },
  {
    id: 'agent-module/sessions in-memory',
    says: 'Sessions can live in memory.',
    lines: { 'Design Decisions': ['e7631bbe'] },
  },
] as const satisfies readonly Requirement[]
