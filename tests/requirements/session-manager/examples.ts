import type { Requirement } from '../requirement.ts'

/** Sections 12 and 13: the example lines and the usage example. */
export const examples = [
  {
    id: 'session-manager/12.1 header',
    says: 'The example header is valid.',
    lines: { '12.1. Simple Session': ['60053dde'] },
  },
  {
    id: 'session-manager/12.1 user-message',
    says: 'The example user message is valid.',
    lines: { '12.1. Simple Session': ['d3c83add'] },
  },
  {
    id: 'session-manager/12.1 assistant-message',
    says: 'The example assistant message is valid.',
    lines: { '12.1. Simple Session': ['9acc3525'] },
  },
  {
    id: 'session-manager/12.2 header',
    says: 'The example header of the session with tools is valid.',
    lines: { '12.2. Complex Session (Tools)': ['699be2a2'] },
  },
  {
    id: 'session-manager/12.2 user-message',
    says: 'The example user message of the session with tools is valid.',
    lines: { '12.2. Complex Session (Tools)': ['85ae6f5f'] },
  },
  {
    id: 'session-manager/12.2 tool-call',
    says: 'The example tool call is valid.',
    lines: { '12.2. Complex Session (Tools)': ['79b4f201'] },
  },
  {
    id: 'session-manager/12.2 tool-result',
    says: 'The example tool result is valid.',
    lines: { '12.2. Complex Session (Tools)': ['5b97b5b5'] },
  },
  {
    id: 'session-manager/13 header-line',
    says: 'The header of the usage example, with `cwd`, is valid.',
    lines: { '13. Go Usage Example': ['1c6c2a0f', '8c78c4ca'] },
  },
  {
    id: 'session-manager/13 new-manager',
    says: 'A program opens a store in a folder.',
    lines: { '13. Go Usage Example': ['8182d1ac'] },
    settled: '`openFileStore({ folder })`.',
  },
  {
    id: 'session-manager/13 continue-recent',
    says: 'A program continues the most recent session.',
    lines: { '13. Go Usage Example': ['b4005aac'] },
  },
  {
    id: 'session-manager/13 new-if-there-is-none',
    says: 'A program creates a session if none exists.',
    lines: { '13. Go Usage Example': ['04bbeda4', 'c2402022'] },
  },
  {
    id: 'session-manager/13 close',
    says: 'A program closes the session.',
    lines: { '13. Go Usage Example': ['e2e022f9'] },
  },
  {
    id: 'session-manager/13 user-line',
    says: 'The user message of the usage example is valid.',
    lines: { '13. Go Usage Example': ['74797f17', '68fe5201'] },
  },
  {
    id: 'session-manager/13 append-user-message',
    says: 'A program appends a user message and gets its id.',
    lines: { '13. Go Usage Example': ['0c6e45aa', '2220e105'] },
  },
  {
    id: 'session-manager/13 context-at-user-message',
    says: 'The context contains the user message.',
    lines: { '13. Go Usage Example': ['d8a75e68', '77e670aa'] },
  },
  {
    id: 'session-manager/13 context-length',
    says: 'A program counts the messages of the context.',
    lines: { '13. Go Usage Example': ['029d28a2', 'c0088a10'] },
  },
  {
    id: 'session-manager/13 assistant-line',
    says: 'The assistant message of the usage example is valid.',
    lines: { '13. Go Usage Example': ['3d42bb77', '59afaadd'] },
  },
  {
    id: 'session-manager/13 append-assistant-message',
    says: 'A program appends an assistant message.',
    lines: { '13. Go Usage Example': ['bd04f1ba', '103f764a'] },
  },
  {
    id: 'session-manager/13 branch-moves-leaf',
    says: 'Branching moves the leaf to the user message.',
    lines: { '13. Go Usage Example': ['89dfc565', 'c77e8a92'] },
  },
  {
    id: 'session-manager/13 branch',
    says: 'A program branches at the user message.',
    lines: { '13. Go Usage Example': ['cef97a89'] },
  },
  {
    id: 'session-manager/13 branched-line',
    says: 'The message on the new branch is valid.',
    lines: { '13. Go Usage Example': ['ca6b720e', 'd00feef0'] },
  },
  {
    id: 'session-manager/13 append-on-branch',
    says: 'A program appends a message on the new branch.',
    lines: { '13. Go Usage Example': ['7d1c5d4e', '6f4287df'] },
  },
  {
    id: 'session-manager/13 label-line',
    says: 'The label of the usage example is valid.',
    lines: { '13. Go Usage Example': ['40b67ef8', 'ed534347'] },
    settled: 'Our labels do not move the leaf; this line, which does, is read correctly.',
  },
  {
    id: 'session-manager/13 set-label',
    says: 'A program labels the user message.',
    lines: { '13. Go Usage Example': ['225af68b'] },
  },
  {
    id: 'session-manager/13 compaction-of-the-start',
    says: 'A compaction summarizes the start and keeps the rest.',
    lines: { '13. Go Usage Example': ['23b4a4f5', 'd4593c93'] },
  },
  {
    id: 'session-manager/13 append-compaction-arguments',
    says: 'A compaction takes its summary and the first kept id.',
    lines: { '13. Go Usage Example': ['2547cd3a'] },
  },
  {
    id: 'session-manager/13 compaction-line',
    says: 'The compaction of the usage example is valid.',
    lines: { '13. Go Usage Example': ['01b00952'] },
  },
  {
    id: 'session-manager/13 append-compaction',
    says: 'A program records a compaction.',
    lines: { '13. Go Usage Example': ['76a39a77'] },
  },
  {
    id: 'session-manager/13 summary-comes-first',
    says: 'The context starts with the summary.',
    lines: { '13. Go Usage Example': ['fe0983a9', 'f810ef09', 'e17cac19'] },
  },
  {
    id: 'session-manager/13 kept-message-comes-second',
    says: 'The kept message follows the summary.',
    lines: { '13. Go Usage Example': ['00e04796'] },
  },
  {
    id: 'session-manager/13 context-after-compaction',
    says: 'A program reads the context after the compaction.',
    lines: { '13. Go Usage Example': ['2b753a19'] },
  },
  {
    id: 'session-manager/13 context-names-its-entries',
    says: 'A program recognizes each entry in the context.',
    lines: { '13. Go Usage Example': ['8801ec63', 'fb0b6f1d', '68625f89', 'ad10f93a', '9555fe99'] },
    settled: 'Each message names its entry; the summary has the role `compactionSummary`.',
  },
] as const satisfies readonly Requirement[]
