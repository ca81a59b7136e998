// An empty Nest app on Fastify with one route: what starting Nest costs by itself.
import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';

class HealthController {
  health() {
    return { status: 'ok' };
  }
}
const property = Object.getOwnPropertyDescriptor(HealthController.prototype, 'health');
Reflect.decorate([Get('/healthz')], HealthController.prototype, 'health', property);
Reflect.decorate([Controller()], HealthController);

class AppModule {}
Reflect.decorate([Module({ controllers: [HealthController] })], AppModule);

process.on('SIGTERM', () => process.exit(0));
const app = await NestFactory.create(AppModule, new FastifyAdapter());
await app.listen(Number(process.env.PORT), '127.0.0.1');
