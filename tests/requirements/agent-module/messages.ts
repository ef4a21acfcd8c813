import type { Requirement } from '../requirement.ts'

/** Messages: content, roles and the history that the model receives. */
export const messages = [
  {
    id: 'agent-module/message id',
    says: 'A message has an id.',
    lines: { 'Data Types': ['999cc29b', '1e634309'] },
    settled: 'It is the id of its log entry.',
  },
  {
    id: 'agent-module/message role',
    says: 'A message has a role that names its sender.',
    lines: { 'Data Types': ['6faf2df9'], 'Message Roles (Role Enum)': ['93fb0a41'] },
  },
  {
    id: 'agent-module/message content',
    says: 'A message has content.',
    lines: { 'Data Types': ['2535d01d'] },
    settled: 'Content is a list of blocks.',
  },
  {
    id: 'agent-module/message reasoning',
    says: 'A message keeps its reasoning text.',
    lines: { 'Data Types': ['cf5cf24e'], 'Reasoning/Thinking Support': ['a33aa1c1'] },
    settled: 'Reasoning is a block of the content.',
  },
  {
    id: 'agent-module/message reasoning-metadata',
    says: 'A message keeps provider metadata of the reasoning.',
    lines: { 'Data Types': ['4633d78c'], 'Reasoning/Thinking Support': ['df2e1b52'] },
    settled: 'The metadata stays with its block.',
  },
  {
    id: 'agent-module/message tool-calls',
    says: 'A message has its tool calls.',
    lines: { 'Data Types': ['ec6d58c9', '8194c0a6'] },
    settled: 'Tool calls are blocks of the content.',
  },
  {
    id: 'agent-module/message tool-results',
    says: 'A message has tool results.',
    lines: { 'Data Types': ['e3678573', '934ff4b4'] },
    settled: 'Each result is one entry, appended when it is ready.',
  },
  {
    id: 'agent-module/message created-at',
    says: 'A message has a creation time.',
    lines: { 'Data Types': ['999cc29b', '7d1802f1'] },
    settled: 'It is the timestamp of its entry.',
  },
  {
    id: 'agent-module/tool-call id',
    says: 'A tool call has an id.',
    lines: { 'Data Types': ['57e99760', '1e634309'] },
  },
  {
    id: 'agent-module/tool-call name',
    says: 'A tool call has the name of its tool.',
    lines: { 'Data Types': ['57e99760', 'fa4c1e21'] },
  },
  {
    id: 'agent-module/tool-call input',
    says: 'A tool call has its input.',
    lines: { 'Data Types': ['75bf9094'] },
    settled: 'The input is parsed JSON.',
  },
  {
    id: 'agent-module/tool-result call-id',
    says: 'A tool result names its call.',
    lines: { 'Data Types': ['3f8f0d62'], 'Tool Execution': ['40543e3b'] },
    settled: '`toolUseId`.',
  },
  {
    id: 'agent-module/tool-result name',
    says: 'The tool of a result is known.',
    lines: { 'Data Types': ['7a75612d', 'fa4c1e21'] },
    settled: 'The name is in the call that the result refers to.',
  },
  {
    id: 'agent-module/tool-result content',
    says: 'A tool result has the output of the tool.',
    lines: { 'Data Types': ['7a75612d', '2535d01d'], 'Tool Execution': ['1a7eea57'] },
  },
  {
    id: 'agent-module/tool-result is-error',
    says: 'A tool result tells whether the tool failed.',
    lines: { 'Data Types': ['1b9d0c5a'], 'Tool Execution': ['8964513c'] },
  },
  {
    id: 'agent-module/roles four',
    says: 'Messages have one of a fixed set of roles.',
    lines: { 'Message Roles (Role Enum)': ['37799b34'] },
    settled: 'The roles are those of the session log.',
  },
  {
    id: 'agent-module/roles user',
    says: 'Human input has the role `user`.',
    lines: { 'Message Roles (Role Enum)': ['935209d7'] },
  },
  {
    id: 'agent-module/roles assistant',
    says: 'Model output has the role `assistant`.',
    lines: { 'Message Roles (Role Enum)': ['9eddeca6'] },
  },
  {
    id: 'agent-module/roles system',
    says: 'The system prompt has the role `system`.',
    lines: { 'Message Roles (Role Enum)': ['f59a6b68'] },
    settled: 'It is a `system` entry, appended only when it changes.',
  },
  {
    id: 'agent-module/roles tool',
    says: 'Tool results have the role `tool`.',
    lines: { 'Message Roles (Role Enum)': ['f39e1835'] },
  },
  {
    id: 'agent-module/roles processing',
    says: 'The role decides how a message is processed.',
    lines: { 'Message Roles (Role Enum)': ['d46719bc'] },
  },
  {
    id: 'agent-module/roles user-triggers',
    says: 'A user message leads to a model response.',
    lines: { 'Message Roles (Role Enum)': ['93c7fbe8'] },
  },
  {
    id: 'agent-module/roles assistant-calls',
    says: 'An assistant message can contain tool calls.',
    lines: { 'Message Roles (Role Enum)': ['93c7fbe8'] },
  },
  {
    id: 'agent-module/roles tool-provides',
    says: 'A tool message returns results to the model.',
    lines: { 'Message Roles (Role Enum)': ['93c7fbe8'] },
  },
  {
    id: 'agent-module/reasoning captured',
    says: 'The agent captures reasoning from models that provide it.',
    lines: { 'Reasoning/Thinking Support': ['8cc322d7'] },
  },
  {
    id: 'agent-module/reasoning start',
    says: 'Capturing begins when the reasoning starts.',
    lines: { 'Reasoning/Thinking Support': ['eac54891', '8db6f320'] },
  },
  {
    id: 'agent-module/reasoning delta',
    says: 'The agent collects the reasoning deltas.',
    lines: { 'Reasoning/Thinking Support': ['1d6ca3e7', '27c85916', '5c3e8919'] },
  },
  {
    id: 'agent-module/reasoning end',
    says: 'The agent stores the complete reasoning and its metadata.',
    lines: { 'Reasoning/Thinking Support': ['5eedf63d', '3854d90c'] },
  },
  {
    id: 'agent-module/reasoning added',
    says: 'The session stores the message with its reasoning.',
    lines: { 'Reasoning/Thinking Support': ['a19c08df'] },
  },
  {
    id: 'agent-module/reasoning not-sent',
    says: 'Reasoning is not returned to a model that cannot verify it.',
    lines: { 'Reasoning/Thinking Support': ['7bc35be9'], 'Design Decisions': ['fe78b7a1'] },
    settled: '`auto` returns it only to the model that produced it; `never` omits it.',
  },
  {
    id: 'agent-module/reasoning only-text-and-calls',
    says: 'The history contains only text and tool calls.',
    lines: { 'Reasoning/Thinking Support': ['11fdaf87'] },
    settled: 'This is the setting `never`.',
  },
  {
    id: 'agent-module/history converts',
    says: 'The agent converts stored messages to the format of the model.',
    lines: { 'History Building': ['64d96581'] },
  },
  {
    id: 'agent-module/history user',
    says: 'A user message becomes a user message of the provider.',
    lines: { 'History Building': ['2589d002', '32ff2a8c', 'b6c04e56'] },
  },
  {
    id: 'agent-module/history assistant',
    says: 'An assistant message becomes text and tool call parts.',
    lines: { 'History Building': ['7d30423e', '7bc4dafc', '0aa01ea1'] },
  },
  {
    id: 'agent-module/history tool',
    says: 'A tool message becomes tool result parts.',
    lines: { 'History Building': ['4797dd7e', 'd3c4cc1d', '9c8da64e'] },
  },
  {
    id: 'agent-module/history last-excluded',
    says: 'The current input is sent only once.',
    lines: { 'History Building': ['35605644'] },
    settled: 'The request is one list; the current input is its last message.',
  },
] as const satisfies readonly Requirement[]
