// A process of @mevitae/redis-work-queue 0.1.5 from npm; peer_worker.py says what it is told and
// what it writes, and why it neither stalls nor dies where it does not.

import fs from 'node:fs';
import {createRequire} from 'node:module';

const told = JSON.parse(process.argv[2]);
const require = createRequire(told.packages + '/');
const Redis = require('ioredis');
// The package's `main` names its TypeScript source, which node does not load.
const {WorkQueue, KeyPrefix, Item} = require('@mevitae/redis-work-queue/dist/WorkQueue.js');

const DEATHS = {BRPOPLPUSH: 0.01, GET: 0.03, SETEX: 0.03, LREM: 0.03, EXEC: 0.04};
const DEATH_STATUS = 9;
const STALL = 0.01;
const OUTLIVE_LEASE = 0.04;
const POLL_S = 1;
const COMMANDS = {brpoplpush: 'BRPOPLPUSH', getBuffer: 'GET', setex: 'SETEX', lrem: 'LREM'};

const bookFile = fs.openSync(told.book, 'a', 0o600);
function book(did, more) {
  const entry = {at: Date.now() / 1000, pid: process.pid, did, ...more};
  fs.writeSync(bookFile, JSON.stringify(entry) + '\n');
}

const sleep = seconds => new Promise(resolve => setTimeout(resolve, seconds * 1000));
const outliveLease = () => sleep(told.lease_s + 0.2 + Math.random() * 1.3);
const isChaos = () => told.do === 'chaos' && !fs.existsSync(told.calm);

async function beforeCommand(command) {
  if (!isChaos()) return;
  if (Math.random() < (DEATHS[command] ?? 0)) {
    book('dies', {before: command});
    process.exit(DEATH_STATUS);
  }
  if (command !== 'EXEC' && Math.random() < STALL) {
    book('stalls', {before: command});
    await outliveLease();
  }
}

// A client that asks before every command whether it may go on.
function mortal(db) {
  return new Proxy(db, {
    get(target, name) {
      const value = target[name];
      if (typeof value !== 'function') return value;
      if (name === 'pipeline') {
        return (...words) => {
          const pipeline = target.pipeline(...words);
          const exec = pipeline.exec.bind(pipeline);
          pipeline.exec = async () => {
            await beforeCommand('EXEC');
            return exec();
          };
          return pipeline;
        };
      }
      return async (...words) => {
        await beforeCommand(COMMANDS[name]);
        return target[name](...words);
      };
    },
  });
}

const seen = item => ({id: item.id, data: item.data.toString('base64')});

async function complete(queue, db, item) {
  book('intends', seen(item));
  const won = await queue.complete(db, item);
  book(won ? 'completed' : 'refused', seen(item));
}

async function chaos(queue, db) {
  const parent = process.ppid;
  while (!fs.existsSync(told.stop) && process.ppid === parent) {
    const item = await queue.lease(db, told.lease_s, true, POLL_S);
    if (item === null) continue;
    book('leased', seen(item));
    if (isChaos() && Math.random() < OUTLIVE_LEASE) {
      book('stalls', {before: 'complete'});
      await outliveLease();
    }
    await sleep(Math.random() * 0.02);
    await complete(queue, db, item);
  }
}

const client = new Redis(told.socket);
const db = mortal(client);
const queue = new WorkQueue(new KeyPrefix(told.queue));
if (told.do === 'add') {
  for (const [id, data] of told.items) {
    await queue.addItem(db, new Item(Buffer.from(data, 'base64'), id));
  }
} else if (told.do === 'lease' || told.do === 'work') {
  let item;
  while ((item = await queue.lease(db, told.lease_s, false)) !== null) {
    book('leased', seen(item));
    if (told.do === 'work') await complete(queue, db, item);
  }
} else if (told.do === 'complete') {
  for (const id of told.ids) await complete(queue, db, new Item(Buffer.alloc(0), id));
} else if (told.do === 'clean') {
  await queue.lightClean(db);
} else if (told.do === 'chaos') {
  await chaos(queue, db);
}
client.disconnect();
